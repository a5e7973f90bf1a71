"""Queues and topics of section 2 on Redis.

A queue is a stream. On the two competing ones all coordinators are one consumer group, whose members take entries in
turn, one at a time: who reads many at once takes a whole burst. A group begins at the first entry, whenever it was
made, and an entry is acknowledged once its effect is stored.

A topic is a stream as well, which every node reads for itself, without a group, or a channel of PUBLISH and SUBSCRIBE
(`topics.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from holdfast.reference.coordinator.messages import Entry, Message, Payload, decode, encode, fields_of
from holdfast.reference.coordinator.scripts import OWNER_GROUP

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

Send = Callable[..., Awaitable[Any]]
FOLLOWERS = "followers"


class Transport:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def publish_queue(self, kind: str, payload: Payload, **ids: str) -> None:
        await self.node.store.call("XADD", self.node.names.channel(kind, **ids), *self.id(), *self.fields(payload))

    async def publish_topic(self, kind: str, payload: Payload, **ids: str) -> None:
        topic = self.node.names.channel(kind, **ids)
        if self.node.settings.topics == "pubsub":
            await self.node.store.call("PUBLISH", topic, encode(payload))
            return
        length = self.node.settings.topic_length
        await self.node.store.call("XADD", topic, "MAXLEN", "~", length, "*", *self.fields(payload))

    def id(self) -> list[str]:
        """Returns the words before the fields of a queue's entry: no MAXLEN, nothing unread is ever cut off."""
        return ["*"]

    def fields(self, payload: Payload) -> list[str]:
        return ["data", encode(payload)]

    def decode(self, words: list[bytes] | None) -> Message | None:
        return decode(fields_of(words).get(b"data", b""))

    def group_name(self, kind: str) -> str:
        return OWNER_GROUP if kind in {"status", "logs"} else FOLLOWERS

    def read_count(self, kind: str) -> int:  # noqa: ARG002  # a seam: both competing queues deal out one by one
        return 1

    def group_start(self, kind: str) -> str:  # noqa: ARG002  # a seam: no queue skips what came before its group
        return "0"

    async def join(self, call: Send, stream: str, kind: str) -> None:
        """Makes the group of a queue and this node's consumer in it, where they are missing."""
        group = self.group_name(kind)
        made = call("XGROUP", "CREATE", stream, group, self.group_start(kind), "MKSTREAM")
        joined = call("XGROUP", "CREATECONSUMER", stream, group, self.node.id)
        for answer in await asyncio.gather(made, joined, return_exceptions=True):
            if isinstance(answer, BaseException) and not str(answer).startswith("BUSYGROUP"):
                raise answer

    async def ack(self, entry: Entry) -> None:
        await self.node.store.call("XACK", entry.stream, entry.group, entry.id)
