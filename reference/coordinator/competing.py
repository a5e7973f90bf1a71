"""A competing queue as this node reads it: entries are handled one after the other, each acknowledged when it is done.

The reading connection is one of its own, because a blocking read would hold up every other call. The blocking is short:
a node that stops reading waits until the read under way has returned and handles what it brought, for a group knows no
way to give an entry back.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import hiredis

from holdfast.reference.coordinator.messages import Entry
from holdfast.reference.coordinator.store import AWAY
from holdfast.reference.shared.redislink import RedisLink

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

RETRY_SECONDS = 0.1
Handle = Callable[[Entry], Awaitable[None]]


class CompetingQueue:
    def __init__(self, node: "Node", kind: str, handle: Handle) -> None:
        self.node = node
        self.kind = kind
        self.handle = handle
        self.stream = node.names.channel(kind)
        self.group = node.transport.group_name(kind)
        self.link = RedisLink(node.settings.redis_url, self.join)
        self.reading = True
        self.at_rest = True

    async def join(self, call: Any) -> None:
        await self.node.transport.join(call, self.stream, self.kind)

    async def consume(self, enabled: Callable[[], bool]) -> None:
        """Reads for ever, while it is `enabled` and was not told to stop. First comes what was left over."""
        start = "0"
        while True:
            if not (self.reading and enabled()):
                self.at_rest = True
                await self.node.clock.sleep(RETRY_SECONDS)
                continue
            self.at_rest = False
            try:
                entries = await self.read(start)
                await self.take(entries)
                start = ">" if not entries else start
            except AWAY as error:
                start = await self.recover(error)

    async def recover(self, error: BaseException) -> str:
        """Returns where to read on: what came with a lost answer is left over."""
        await self.node.clock.sleep(RETRY_SECONDS)
        if not isinstance(error, hiredis.ReplyError):
            return "0"
        with suppress(*AWAY):  # somebody may have removed the group or the stream
            await self.join(self.link.call)
        return ">"

    async def read(self, start: str) -> list[Entry]:
        """Returns new entries (`>`), or those that this consumer was given and has not acknowledged (`0`)."""
        group = ("XREADGROUP", "GROUP", self.group, self.node.id, "COUNT", self.node.transport.read_count(self.kind))
        block = ("BLOCK", int(self.node.settings.block * 1000))
        reply = await self.link.call(*group, *block, "STREAMS", self.stream, start)
        return [self.entry(*each) for _, entries in reply or () for each in entries]

    async def take(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.message is None:
                self.node.events.log("warning", f"A message on {self.stream} is no JSON object; it is set aside.")
            else:
                await self.handle(entry)
            await self.node.transport.ack(entry)

    async def claim_stuck(self) -> None:
        """Takes over entries that a consumer was given a whole DeadNodeTimeout ago and has not acknowledged."""
        idle, cursor = int(self.node.settings.dead_node_timeout * 1000), b"0-0"
        while self.reading:
            words = ("XAUTOCLAIM", self.stream, self.group, self.node.id, idle, cursor, "COUNT", 100)
            cursor, entries, *_ = await self.node.store.call(*words)
            await self.take([self.entry(*each) for each in entries if each])
            if cursor == b"0-0":
                return

    def entry(self, id_: bytes, words: list[bytes] | None) -> Entry:
        return Entry(self.stream, self.group, id_.decode(), self.node.transport.decode(words))

    async def stop(self) -> None:
        """Reads no more, and returns when what was read has been handled."""
        self.reading = False
        while not self.at_rest and self.link.up:
            await self.node.clock.sleep(0.01)
