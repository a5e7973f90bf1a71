"""The bus as a worker reads it: one Redis stream, one consumer group, each event acknowledged once it is decided.

The reading connection is a second one, because a blocking read would hold up every other call.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import hiredis

from holdfast.reference.intents.scripts import BUS, GROUP
from holdfast.reference.shared.redislink import Call, RedisAway, RedisLink

if TYPE_CHECKING:
    from holdfast.reference.intents.worker import Worker

BLOCK_MS = 1000
BATCH = 100
RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class Entry:
    """One event with its id on the stream; `session_id` is empty for what is no event of this service."""

    id: str
    type: str
    session_id: str


def entry_of(id_: bytes, words: list[bytes] | None) -> Entry:
    """Reads an event. Anybody may write to a stream, so nothing in it is taken for granted."""
    words = words or []
    fields = dict(zip(words[::2], words[1::2], strict=False))
    session_id = ""
    with suppress(ValueError, AttributeError):
        session_id = str(json.loads(fields.get(b"data", b"{}")).get("sessionId", ""))
    return Entry(id_.decode(), fields.get(b"type", b"").decode(errors="replace"), session_id)


class Bus:
    def __init__(self, node: "Worker") -> None:
        self.node = node
        self.reader = RedisLink(node.settings.redis_url, self.join)

    async def join(self, call: Call) -> None:
        """Makes the group, from the first event on: intents that were queued before any worker ran are consumed."""
        try:
            await call("XGROUP", "CREATE", BUS, GROUP, "0", "MKSTREAM")
        except hiredis.ReplyError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def consume(self) -> None:
        """Hands out new events for ever. A bus that is away, gone or no stream is tried again."""
        while True:
            try:
                for entry in await self.read():
                    self.node.orchestrator.receive(entry)
            except RedisAway:
                await asyncio.sleep(RETRY_SECONDS)
            except hiredis.ReplyError:
                await asyncio.sleep(RETRY_SECONDS)
                with suppress(RedisAway, hiredis.ReplyError):
                    await self.join(self.reader.call)

    async def read(self) -> list[Entry]:
        group = ("XREADGROUP", "GROUP", GROUP, self.node.settings.node)
        reply = await self.reader.call(*group, "COUNT", BATCH, "BLOCK", BLOCK_MS, "STREAMS", BUS, ">")
        return [entry_of(*each) for _, entries in reply or () for each in entries]

    async def claim(self, idle: float) -> None:
        """Takes over events that were delivered at least `idle` seconds ago and never acknowledged."""
        cursor: Any = b"0-0"
        while True:
            words = ("XAUTOCLAIM", BUS, GROUP, self.node.settings.node, int(idle * 1000), cursor, "COUNT", BATCH)
            cursor, entries, *_ = await self.node.link.call(*words)
            for each in entries:
                self.node.orchestrator.receive(entry_of(*each))
            if cursor == b"0-0":
                return

    async def ack(self, entry: Entry) -> None:
        """Acknowledges an event. If that is lost the event comes again, and is dropped by the state of its session."""
        with suppress(RedisAway, hiredis.ReplyError):
            await self.node.link.call("XACK", BUS, GROUP, entry.id)
