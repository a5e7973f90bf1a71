"""Topics as this node hears them: every message reaches it, from the moment on at which it began to listen.

As streams: one read for all topics, each from the last id that was seen, so that nothing is missed while the connection
is down. With PUBLISH: one subscription each, and what was said while it was down is lost.

`heard_until` is the moment up to which nothing can have been said that this node does not know. Silence counts only as
far as that: a node that could not listen has heard nobody, and nobody is dead for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.messages import Message, decode
from holdfast.reference.coordinator.store import AWAY
from holdfast.reference.shared.redislink import Call, RedisLink, Subscription

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

RETRY_SECONDS = 0.1
AT_ONCE = 1000
Hear = Callable[[Message], None]


class Topics:
    """Topics as streams."""

    def __init__(self, node: "Node") -> None:
        self.node = node
        self.hearers: dict[str, Hear] = {}
        self.last: dict[str, str] = {}
        self.heard_until = node.clock.now()
        self.link = RedisLink(node.settings.redis_url, self.begin)

    def on(self, topic: str, hear: Hear) -> None:
        self.hearers[topic] = hear

    def start(self) -> None:
        self.link.start()

    async def begin(self, call: Call) -> None:
        """Notes where each topic ends now; on a later connection reading goes on where it was."""
        for topic in self.hearers.keys() - self.last.keys():
            newest = await call("XREVRANGE", topic, "+", "-", "COUNT", 1)
            self.last[topic] = newest[0][0].decode() if newest else "0-0"

    async def listen(self) -> None:
        while True:
            try:
                await self.listen_once()
            except AWAY:
                await self.node.clock.sleep(RETRY_SECONDS)

    async def listen_once(self) -> None:
        began = self.node.clock.now()
        words = ("XREAD", "COUNT", AT_ONCE, "BLOCK", int(self.node.settings.block * 1000), "STREAMS")
        reply = await self.link.call(*words, *self.last.keys(), *self.last.values())
        for name, entries in reply or ():
            topic = name.decode()
            for id_, words_ in entries:
                self.last[topic] = id_.decode()
                self.hear(topic, self.node.transport.decode(words_))
        if all(len(entries) < AT_ONCE for _, entries in reply or ()):
            self.heard_until = began

    def hear(self, topic: str, message: Message | None) -> None:
        if message is not None:
            self.hearers[topic](message)

    async def close(self) -> None:
        await self.link.close()


class PublishedTopics(Topics):
    """Topics as channels of PUBLISH."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.subscriptions: list[Subscription] = []

    def start(self) -> None:
        for topic in self.hearers:
            receive = self.receiver(topic)
            self.subscriptions.append(Subscription(self.node.settings.redis_url, topic, receive))
            self.subscriptions[-1].start()

    def receiver(self, topic: str) -> Callable[[bytes], None]:
        return lambda data: self.hear(topic, decode(data))

    async def listen(self) -> None:
        connections = 0
        while True:
            await self.node.clock.sleep(self.node.settings.block)
            if all(each.up for each in self.subscriptions):
                made = sum(each.connections for each in self.subscriptions)
                if made != connections:
                    self.node.health.begin_again()
                connections, self.heard_until = made, self.node.clock.now()

    async def close(self) -> None:
        for each in self.subscriptions:
            await each.close()
