"""Queue positions pushed over a WebSocket, beside the poll (spec 5, the later improvement)."""

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web

from holdfast.reference.admission.redislink import RedisAway
from holdfast.reference.admission.verdicts import Status

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
        """A watch of the owner's waiting character, until it is promoted or somebody closes."""
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
        place = (found["position"], found["depth"])
        if shown is None or place != (shown["position"], shown["depth"]):
            await ws.send_str(json.dumps({"type": "queue_update", "position": place[0], "depth": place[1]}))
        return found

    async def _over(self, ws: web.WebSocketResponse, found: Status) -> None:
        if found["state"] == "admitted":
            await ws.send_str(json.dumps({"type": "queue_promoted"}))
        await ws.close(code=PROMOTED if found["state"] == "admitted" else UNKNOWN)

    async def close_all(self) -> None:
        await asyncio.gather(*(ws.close(code=GOING_AWAY) for ws in list(self.open)))
