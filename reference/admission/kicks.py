"""Closing a socket that another node has open.

Invariant: `evict` returns True only when the socket is closed. A reconnect relies on it: the session gets its new
socket after the old one is gone. Nothing else relies on a message to arrive. A socket that should have been closed by
`send` finds out with its next heartbeat that its session is gone (`Sockets.missed`).

Who owns what. A socket belongs to the node whose name is in its id, and only that node closes it. Each node listens
on a channel of its own name, over a second connection, so a message goes to one node only.

Order of an eviction:

1. The asker publishes `close` on the owner's channel. Redis says how many listeners it reached; none means that the
   owner is gone, and its sockets with it.
2. The owner closes the socket and publishes `closed` on the asker's channel. It does so also for a socket that it
   does not know: that one is closed already.
3. The asker waits for `closed`, `ANSWER_SECONDS` at most. Without it, the socket may be open, and `evict` returns
   False.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from holdfast.reference.shared.redislink import RedisAway, Subscription

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

ANSWER_SECONDS = 1.0
"""How long an eviction waits for the owner of the socket."""


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
        """Closes a socket on whichever node has it, if there is one, and does not wait for it."""
        if socket_id:
            self.node.spawn(self._send(socket_id, code))

    async def _send(self, socket_id: str, code: int) -> None:
        try:
            await self.evict(socket_id, code, wait=False)
        except RedisAway:
            return  # the next heartbeat of that socket finds its session gone

    async def evict(self, socket_id: str, code: int, *, wait: bool = True) -> bool:
        """Closes a socket on whichever node has it; returns whether it is known to be closed."""
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
        """Closes the socket, if this node has it, and answers."""
        await self.node.sockets.close(message["close"], message["code"])
        try:
            await self._publish(message["answerTo"], {"closed": message["close"]})
        except RedisAway:
            return  # the asker gets no answer and refuses
