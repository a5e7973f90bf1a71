"""Headless Chromium, driven through its DevTools protocol: no driver program, no further package."""

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
START_DEADLINE = 30.0
CALL_DEADLINE = 30.0


def executable() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, (
        f"no Chromium on PATH under any of the names {', '.join(NAMES)}: install it (Debian: apt install chromium)"
    )
    return found


class Page:
    """One tab. What it logs and what it asks the network for is kept from the start."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._number = 0
        self._loaded = False

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        async with asyncio.timeout(CALL_DEADLINE):
            while (message := await self._next()).get("id") != self._number:
                pass
        assert "error" not in message, f"{method}: {message['error']}"
        result: dict[str, Any] = message["result"]
        return result

    async def open(self, url: str, *, width: int = 1280, height: int = 900) -> None:
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(CALL_DEADLINE):
            while not self._loaded:
                await self._next()

    async def evaluate(self, expression: str) -> Any:
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def screenshot(self) -> bytes:
        picture = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(picture["data"])

    async def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._socket.receive_json()
        params = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                self.console.append(str(params))
        return message


@contextlib.asynccontextmanager
async def page() -> AsyncIterator[Page]:
    """A fresh browser with one tab; it and all that it wrote are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as scratch, _browser(scratch):
        port = await _port(Path(scratch) / "DevToolsActivePort")
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json/list") as reply:
                tab = next(target for target in await reply.json() if target["type"] == "page")
            async with http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)


@contextlib.contextmanager
def _browser(scratch: str) -> Iterator[None]:
    process = subprocess.Popen(
        [executable(), *FLAGS, f"--user-data-dir={scratch}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": scratch},
        start_new_session=True,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def _port(file: Path) -> int:
    end = time.monotonic() + START_DEADLINE
    while (port := _read_port(file)) is None:
        assert time.monotonic() < end, f"Chromium did not listen within {START_DEADLINE:g} s"
        await asyncio.sleep(0.05)
    return port


def _read_port(file: Path) -> int | None:
    """Chromium writes the port that it chose into its folder once it listens."""
    head, end, _ = file.read_text().partition("\n") if file.exists() else ("", "", "")
    return int(head) if end else None
