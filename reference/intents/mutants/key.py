"""Violations of the idempotency key and its secrets (3.3)."""

import asyncio
import hashlib
import secrets
from collections.abc import Sequence

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.idemkeys import LABEL, IdemKeys
from holdfast.reference.intents.mutants.table import violates
from holdfast.reference.intents.payloads import Intent
from holdfast.reference.intents.store import Accepted, Record, Store
from holdfast.reference.shared.settings import BadSetting


@violates("IN-KEY-01", 1, "Unkeyed SHA-256 of the same text.")
class Unkeyed(IdemKeys):
    def mac(self, secret: bytes, text: str) -> str:  # noqa: ARG002  # that is the violation
        return hashlib.sha256(text.encode()).hexdigest()


@violates("IN-KEY-01", 2, "The label is left out.")
class Unlabelled(IdemKeys):
    def material(self, intent: Intent) -> str:
        return super().material(intent).removeprefix(f"{LABEL}|")


@violates("IN-KEY-01", 3, "The intent type is left out, or an internal name is used for it.")
class Untyped(IdemKeys):
    def material(self, intent: Intent) -> str:
        return super().material(intent).replace(f"|{intent.type}|", "|", 1)


@violates("IN-KEY-01", 4, "The parts are concatenated without separator.")
class Concatenated(IdemKeys):
    def material(self, intent: Intent) -> str:
        return super().material(intent).replace("|", "")


@violates("IN-KEY-01", 5, "Target and profile are swapped.")
class Swapped(IdemKeys):
    def material(self, intent: Intent) -> str:
        return "|".join([LABEL, intent.type, intent.profile, self.target(intent), self.bucket(intent)])


@violates("IN-KEY-02", 1, "startMs / 1000 is used as bucket for live intents too.")
class LiveOffset(IdemKeys):
    def bucket(self, intent: Intent) -> str:
        return str(intent.start_ms // 1000)


@violates(
    "IN-KEY-02",
    2,
    "The reference is normalised (trailing colons dropped, letters upper-cased) before it enters the key.",
)
class Normalised(IdemKeys):
    def target(self, intent: Intent) -> str:
        return super().target(intent) if intent.vod else intent.service_ref.upper().rstrip(":")


@violates("IN-KEY-03", 1, "The service reference is the target of a recording too, so recordings of one channel merge.")
class ServiceIsTarget(IdemKeys):
    def target(self, intent: Intent) -> str:
        return intent.service_ref


class Buckets(IdemKeys):
    """Recordings with other buckets."""

    def of(self, start_ms: int) -> int:
        raise NotImplementedError

    def bucket(self, intent: Intent) -> str:
        return str(self.of(intent.start_ms)) if intent.vod else super().bucket(intent)


@violates("IN-KEY-03", 2, "The bucket is finer than a second (milliseconds), so 10 s and 10.5 s are two sessions.")
class Milliseconds(Buckets):
    def of(self, start_ms: int) -> int:
        return start_ms


@violates("IN-KEY-03", 3, "The bucket is always 0, so 60 s shares with 10 s.")
class OneBucket(Buckets):
    def of(self, start_ms: int) -> int:  # noqa: ARG002  # that is the violation
        return 0


@violates("IN-KEY-03", 4, "The offset is rounded, not floored.")
class Rounded(Buckets):
    def of(self, start_ms: int) -> int:
        return (start_ms + 500) // 1000


@violates("IN-KEY-03", 5, "The bucket is ten seconds wide.")
class TenSeconds(Buckets):
    def of(self, start_ms: int) -> int:
        return start_ms // 10_000


@violates("IN-KEY-04", 1, "The secret is hard-coded or taken from the API token.")
class HardCoded(IdemKeys):
    def load_secrets(self) -> list[bytes]:
        return [b"xg2g"]


@violates("IN-KEY-04", 2, "The mapping is kept in API process memory and lost on restart.")
class InMemory(Acceptance):
    made: frozenset[str] = frozenset()

    def keys_of(self, call: Call) -> tuple[str, list[str]]:
        key, candidates = super().keys_of(call)
        known = [each for each in candidates if each in self.made]
        self.made |= {key}
        return key, known


@violates("IN-KEY-04", 3, "With a previous secret configured new mappings are written under it, or under both.")
class UnderPrevious(IdemKeys):
    def current(self, intent: Intent) -> str:
        return self.mac(self.secrets[-1], self.material(intent))


@violates("IN-KEY-05", 1, "The process exits with a configuration error.")
class Demanded(IdemKeys):
    def generated(self) -> bytes:
        raise BadSetting("XG2G_IDEM_SECRET must be set.")


@violates("IN-KEY-05", 2, "An empty or built-in constant secret is used.")
class Empty(IdemKeys):
    def generated(self) -> bytes:
        self.warn()
        return b""


@violates("IN-KEY-05", 3, "A secret is generated per request.")
class PerRequest(IdemKeys):
    def mac(self, secret: bytes, text: str) -> str:
        return super().mac(secret if self.settings.idem_secret else secrets.token_bytes(32), text)


@violates("IN-KEY-06", 1, "The previous secret is configured but never consulted.")
class NeverPrevious(IdemKeys):
    def load_secrets(self) -> list[bytes]:
        return super().load_secrets()[:1]


@violates("IN-KEY-06", 2, "The previous secret is tried first.")
class PreviousFirst(IdemKeys):
    def candidates(self, intent: Intent) -> list[str]:
        return super().candidates(intent)[::-1]


@violates(
    "IN-KEY-06",
    3,
    "Previous-key look-up and current-key insert are separate round trips, so a herd after rotation gets two sessions.",
)
class TwoTrips(Store):
    async def accept(self, candidates: Sequence[str], session: Record, event: Record) -> Accepted:
        if len(candidates) < 2:
            return await super().accept(candidates, session, event)
        for key in candidates:
            if known := await self.node.link.call("GET", f"idem:{key}"):
                return Accepted(False, known.decode(), "")
        await asyncio.sleep(0.02)
        return await super().accept([], session, event)
