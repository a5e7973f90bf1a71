"""Queue positions pushed over a WebSocket, beside the poll (spec 5, the later improvement).

Invariant: a watch shows nothing that a poll at the same moment would not show. It asks the same script (`status`)
every tick of the promoter and sends a frame only when position or depth has changed. It only reads: opening, closing
or losing a watch changes neither the entry nor its place.

Order. The first frame is the present position. Positions follow as they change. The watch ends when the character no
longer waits: after `queue_promoted` with code 1000 if it was promoted (session and token are fetched by poll, so that
no token is pushed), with code 4404 if it is not in this queue. An outage of Redis is a pause, not an end.

Who owns what. `serve` runs in the task of the request and reads, so that it sees the client's close; `_updates` is a
second task that writes. Whichever ends first ends the other: a close by `_updates` ends the reading, and `serve`
cancels `_updates` when the client has gone. `open` is for the stop of the node only.
"""

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web

from holdfast.reference.admission.verdicts import Status
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

UNKNOWN = 4404
PROMOTED = 1000
GOING_AWAY = 1001


class Watches:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.open: set[web.WebSocketResponse] = set()

    async def serve(self, ws: web.WebSocketResponse, user_id: str, character_id: str, instance_id: str) -> None:
        """Serves a watch until the character no longer waits or one side closes."""
        if not self.node.settings.push or not self.node.rules.is_id(character_id):
            await ws.close(code=UNKNOWN)
            return
        self.open.add(ws)
        updates = asyncio.create_task(self._updates(ws, user_id, character_id, instance_id))
        try:
            while (message := await ws.receive()).type in {WSMsgType.TEXT, WSMsgType.PING, WSMsgType.BINARY}:
                if message.type is WSMsgType.PING:
                    await ws.pong(message.data)
        finally:
            self.open.discard(ws)
            updates.cancel()

    async def _updates(self, ws: web.WebSocketResponse, user_id: str, character_id: str, instance_id: str) -> None:
        shown: Status | None = None
        with suppress(ConnectionError):
            while not ws.closed:
                with suppress(RedisAway):
                    found = await self.node.store.status(user_id, character_id, instance_id)
                    if found["state"] != "queued":
                        await self._over(ws, found)
                        return
                    shown = await self._update(ws, shown, found)
                await asyncio.sleep(self.node.settings.promoter_tick)

    async def _update(self, ws: web.WebSocketResponse, shown: Status | None, found: Status) -> Status:
        """Sends the position if it differs from the one shown last; returns what is shown now."""
        place = (found["position"], found["depth"])
        if shown is None or place != (shown["position"], shown["depth"]):
            await ws.send_str(json.dumps({"type": "queue_update", "position": place[0], "depth": place[1]}))
        return found

    async def _over(self, ws: web.WebSocketResponse, found: Status) -> None:
        """Ends the watch of a character that no longer waits."""
        if found["state"] == "admitted":
            await ws.send_str(json.dumps({"type": "queue_promoted"}))
        await ws.close(code=PROMOTED if found["state"] == "admitted" else UNKNOWN)

    async def close_all(self) -> None:
        await asyncio.gather(*(ws.close(code=GOING_AWAY) for ws in list(self.open)))
