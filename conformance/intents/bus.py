"""The bus as a check reads it: what arrives, in which order, and what happens while nothing can be published."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from holdfast.conformance.intents.client import Intents
from holdfast.conformance.intents.keys import Event, IntentKeys

# An event, and the record of its session when it arrived.
Arrival = tuple[Event, dict[str, Any]]


async def note_arrivals(store: IntentKeys, after: str, arrived: list[Arrival]) -> None:
    """Reads the record of each new event's session as soon as the event arrives; goes on until it is cancelled."""
    async for event in store.arrivals(after):
        arrived.append((event, await store.session(event.session_id)))  # noqa: PERF401 - it is read meanwhile


def last_of(events: Sequence[Event]) -> str:
    """Returns the id of the last event, or what comes before the first."""
    return events[-1].id if events else "0-0"


def told(events: Iterable[Event]) -> str:
    """Returns the events as a finding shows them."""
    return "; ".join(event.describe() for event in events) or "nothing new"


@contextlib.asynccontextmanager
async def broken(intents: Intents) -> AsyncIterator[None]:
    """Puts a text in the place of the bus during the block, so that publishing fails."""
    store, bus = intents.store, intents.store.name("bus")
    aside = f"{bus}:aside"
    await store.together(("RENAME", bus, aside), ("SET", bus, "no stream"))
    intents.context.transcript.note(f"{bus} is a text")
    try:
        yield
    finally:
        await asyncio.shield(store.together(("DEL", bus), ("RENAME", aside, bus)))
        intents.context.transcript.note(f"{bus} is as before")
