"""Secrets of the keys: an API with one, with two or with none, and how one may show up in a text."""

import base64
import binascii
import re
from collections.abc import Iterator

from holdfast.check.keyspace import NO_WRITE, Keyspace
from holdfast.check.timeline import Moment
from holdfast.conformance.intents.client import Intents

# Whatever is neither in a token nor in hex or base64; the padding of base64 is not needed to read it.
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9+/_-]+")


def shows(secret: str, text: str) -> bool:
    """Whether the secret is in the text, in one of the three forms."""
    raw = secret.encode()
    plain = base64.b64encode(raw).decode().rstrip("=")
    for_urls = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return any(form in text for form in (secret, plain, for_urls)) or raw.hex() in text.lower()


def readings(text: str) -> Iterator[bytes]:
    """Yields every secret that a word of the text may be, in one of the three forms."""
    for word in filter(None, _BETWEEN_WORDS.split(text)):
        yield word.encode()
        for read in (bytes.fromhex, _base64):
            try:
                yield read(word)
            except (ValueError, binascii.Error):
                continue


def _base64(word: str) -> bytes:
    padded = word + "=" * (-len(word) % 4)
    return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)


async def with_secrets(intents: Intents, current: str, previous: str = "") -> None:
    """Starts the API again with these secrets; without a previous one it has none."""
    if previous:
        await intents.restart(intents.apis[0], idem_secret=current, idem_secret_previous=previous)
    else:
        await intents.restart(intents.apis[0], unset=_previous(intents), idem_secret=current)


async def without_secret(intents: Intents, how: str) -> None:
    """Starts the API again with no secret at all: the current one is "unset" or "empty"."""
    if how == "unset":
        await intents.restart(intents.apis[0], unset=["idem_secret", *_previous(intents)])
    else:
        await with_secrets(intents, "")


def _previous(intents: Intents) -> list[str]:
    """The setting of the previous secret, where the descriptor has one."""
    return [name for name in ("idem_secret_previous",) if name in intents.context.target.settings]


async def added_keys(intents: Intents, keys: Keyspace, since: Moment) -> set[str]:
    """Returns the names of the idem keys that were written since then, also of those that are gone again."""
    (root,) = intents.store.roots("idem")
    events = await keys.events(f"{root}*", since=since)
    return {event.key for event in events if event.kind not in NO_WRITE}
