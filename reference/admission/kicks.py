"""Closing a socket that another node has open. Each node listens on a channel of its own.

A publication that reaches nobody means that the other node is gone, and its sockets with it.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from holdfast.reference.admission.redislink import RedisAway, Subscription

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

ANSWER_SECONDS = 1.0


class Kicks:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._name = node.settings.node
        self._answers: dict[str, asyncio.Future[None]] = {}
        channel = self._channel(self._name)
        self.subscription = Subscription(node.settings.redis_url, channel, self._receive)

    def _channel(self, node_name: str) -> str:
        return f"{self.node.settings.prefix}admission:kick:{node_name}"

    def send(self, socket_id: str | None, code: int) -> None:
        """Closes a socket somewhere, if there is one, without waiting for it."""
        if socket_id:
            self.node.spawn(self._send(socket_id, code))

    async def _send(self, socket_id: str, code: int) -> None:
        try:
            await self.evict(socket_id, code, wait=False)
        except RedisAway:
            return  # the next heartbeat of that socket finds its session gone

    async def evict(self, socket_id: str, code: int, *, wait: bool = True) -> bool:
        """Closes a socket somewhere; True once it is known to be closed."""
        owner = socket_id.rpartition("/")[0]
        if owner == self._name:
            await self.node.sockets.close(socket_id, code)
            return True
        answer = self._answers.setdefault(socket_id, asyncio.get_running_loop().create_future())
        try:
            reached = await self._publish(owner, {"close": socket_id, "code": code, "answerTo": self._name})
            if reached and wait:
                await asyncio.wait([answer], timeout=ANSWER_SECONDS)
        finally:
            self._answers.pop(socket_id, None)
        return reached == 0 or answer.done()

    async def _publish(self, node_name: str, message: dict[str, Any]) -> int:
        return int(await self.node.link.call("PUBLISH", self._channel(node_name), json.dumps(message)))

    def _receive(self, payload: bytes) -> None:
        message = json.loads(payload)
        if "closed" in message:
            answer = self._answers.get(message["closed"])
            if answer is not None and not answer.done():
                answer.set_result(None)
        else:
            self.node.spawn(self._obey(message))

    async def _obey(self, message: dict[str, Any]) -> None:
        """A socket that this node does not know is closed already."""
        await self.node.sockets.close(message["close"], message["code"])
        try:
            await self._publish(message["answerTo"], {"closed": message["close"]})
        except RedisAway:
            return  # the asker waits in vain and refuses
