"""What several mutants reach for: another order of stages, the session behind a key, a session that is made known."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.reference.intents.acceptance import Call
from holdfast.reference.intents.store import Accepted

if TYPE_CHECKING:
    from holdfast.reference.intents.api import Api

Each = TypeVar("Each")


def ahead(stages: Sequence[Each], other: Each, *moved: Each) -> list[Each]:
    """Returns the stages with some of them moved in front of another."""
    rest = [each for each in stages if each not in moved]
    place = rest.index(other)
    return [*rest[:place], *moved, *rest[place:]]


async def mapped(node: "Api", call: Call) -> Accepted | None:
    """Returns the session that the key of an intent maps to, whatever has become of it."""
    for key in node.keys.candidates(call.intent):
        if session_id := await node.link.call("GET", f"idem:{key}"):
            return Accepted(False, session_id.decode(), "")
    return None


async def note(node: Any, call: Call, state: str) -> None:
    """Stores a record of an intent that was not accepted."""
    words = [word for pair in {**call.record(), "state": state}.items() for word in pair]
    await node.link.call("HSET", f"session:{call.session_id}", *words)


async def beats(node: Any, worker: str = "*") -> bool:
    """Tells whether a worker of this name has announced itself within the last two seconds."""
    names = await node.link.call("KEYS", f"worker:{worker}")
    left = [await node.link.call("PTTL", name) for name in names]
    return any(each > (node.settings.worker_life - 2) * 1000 for each in left)


async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)
