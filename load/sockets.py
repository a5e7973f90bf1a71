"""WebSockets of admission sessions for load users, with asyncio, behind the bridge: open, watch, drop, close.

Each socket sends heartbeats until it ends. Who watches one is told when it ended, and by whom.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from holdfast.check.no_answer import how_it_ended
from holdfast.conformance.admission import wire


@dataclass(eq=False)
class _Open:
    """A socket that is open, the tasks that keep it so, and how it ended once it has."""

    ws: aiohttp.ClientWebSocketResponse
    ended: asyncio.Future[dict[str, Any]]
    beating: asyncio.Task[None] | None = None
    reading: asyncio.Task[None] | None = None


class Sockets:
    """What the bridge calls; sockets are named by numbers."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[int, _Open] = {}
        self._http: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_how: object) -> None:
        for number in list(self._open):
            await self.drop(number)
        await self._http.close()

    async def open(
        self, base: str, path: str, query: Mapping[str, str], bearer: str, beat: float, within: float
    ) -> dict[str, Any]:
        """Opens a socket and waits for its first frame; returns its number, or 0 and why there is none."""
        sent = time.monotonic()
        url, said = base.replace("http", "ws", 1) + path, {"Authorization": f"Bearer {bearer}"}
        try:
            async with asyncio.timeout(within):
                ws = await self._http.ws_connect(url, params=dict(query), headers=said)
                first = await ws.receive()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return {"socket": 0, "sent": sent, "received": time.monotonic(), "why": how_it_ended(error)}
        received = time.monotonic()
        if first.type is not aiohttp.WSMsgType.TEXT:
            return {"socket": 0, "sent": sent, "received": received, "why": f"closed with {ws.close_code}"}
        number = next(self._numbers)
        self._open[number] = self._kept(ws, beat)
        return {"socket": number, "sent": sent, "received": received, "frame": json.loads(first.data)}

    def _kept(self, ws: aiohttp.ClientWebSocketResponse, beat: float) -> _Open:
        kept = _Open(ws, asyncio.get_running_loop().create_future())
        kept.beating = asyncio.create_task(_beat(ws, beat))
        kept.reading = asyncio.create_task(_read(kept))
        return kept

    async def ended(self, number: int) -> dict[str, Any]:
        """Waits until the socket has ended; returns when, and with which code."""
        return await asyncio.shield(self._open[number].ended)

    async def drop(self, number: int) -> float:
        """Aborts the connection without a word, as a client that is lost; returns when."""
        kept = self._open.pop(number)
        self._stop(kept)
        kept.ws._writer.transport.abort()  # noqa: SLF001 - aiohttp has no public way to break off
        return time.monotonic()

    async def close(self, number: int) -> float:
        """Says goodbye, as a client that leaves; returns when."""
        kept = self._open.pop(number)
        self._stop(kept)
        await kept.ws.close()
        return time.monotonic()

    def _stop(self, kept: _Open) -> None:
        for task in (kept.beating, kept.reading):
            if task:
                task.cancel()
        if not kept.ended.done():
            kept.ended.set_result({"at": time.monotonic(), "code": 0})


async def _beat(ws: aiohttp.ClientWebSocketResponse, every: float) -> None:
    while not ws.closed:
        await asyncio.sleep(every)
        try:
            await ws.send_str(json.dumps(wire.HEARTBEAT))
        except (ConnectionError, aiohttp.ClientError):
            return


async def _read(kept: _Open) -> None:
    async for _message in kept.ws:
        pass
    if not kept.ended.done():
        kept.ended.set_result({"at": time.monotonic(), "code": kept.ws.close_code or 1006})
