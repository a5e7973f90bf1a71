"""An asyncio client for tests of the bridge: aiohttp, against a WebSocket server that sends everything back."""

import asyncio
import time
from typing import Self

import aiohttp


class Echo:
    """Speaks to one server; `say` waits as long as the server does."""

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_how: object) -> None:
        await self._http.close()

    async def say(self, url: str, text: str) -> dict[str, object]:
        async with self._http.ws_connect(url) as ws:
            sent = time.monotonic()
            await ws.send_str(text)
            return {"heard": await ws.receive_str(), "sent": sent, "received": time.monotonic()}

    async def sleep(self, seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def breaks(self) -> None:
        raise ValueError("it broke")
