"""The two subjects: a real toxiproxy-server where there is one, and our relay, both as processes of a guardian."""

import asyncio
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from holdfast.chaos.relay.server import RelayServer
from holdfast.fixtures.launcher import Command, Guardian, ready
from holdfast.fixtures.ports import PortPool

CACHED = Path.home() / ".cache" / "holdfast" / "bin" / "toxiproxy-server"
HOW_TO_GET_IT = (
    "no toxiproxy-server: put release 2.12.0 on PATH, name it in TOXIPROXY_SERVER, or build it with Go: "
    "GOBIN=DIR go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0, then move DIR/server to "
    "~/.cache/holdfast/bin/toxiproxy-server"
)
DEADLINE = 20.0


def real_server() -> str | None:
    named = os.environ.get("TOXIPROXY_SERVER") or shutil.which("toxiproxy-server")
    return named or (str(CACHED) if CACHED.exists() else None)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    def seen(self) -> tuple[int, dict[str, str], str]:
        """What clients can depend on."""
        kept = ("content-type", "x-content-type-options", "allow", "location")
        headers = {name: self.headers[name] for name in kept if name in self.headers}
        request_id = self.headers.get("x-toxiproxy-request-id")
        if request_id is not None:
            headers["request-id"] = "20 characters" if re.fullmatch("[0-9a-z]{20}", request_id) else request_id
        return self.status, headers, self.body


@dataclass
class Subject:
    """A server under comparison, by the port of its API."""

    name: str
    port: int
    ports: dict[str, int] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: str = "", **headers: str) -> Answer:
        async with asyncio.timeout(DEADLINE):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                given = {"host": "relay", "connection": "close", "content-length": str(len(body.encode()))} | headers
                lines = [
                    f"{method} {path} HTTP/1.1",
                    *(f"{k.replace('_', '-')}: {v}" for k, v in given.items()),
                    "",
                    "",
                ]
                writer.write("\r\n".join(lines).encode() + body.encode())
                return _parse(await reader.read())
            finally:
                writer.close()

    async def clear(self) -> None:
        for name in json.loads((await self.call("GET", "/proxies")).body):
            await self.call("DELETE", f"/proxies/{quote(name)}")


def _parse(raw: bytes) -> Answer:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _unchunked(body)
    return Answer(int(first.split()[1]), headers, body.decode())


def _unchunked(raw: bytes) -> bytes:
    body = b""
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        length = int(size, 16)
        body, raw = body + rest[:length], rest[length + 2 :] if length else b""
    return body


async def start_real(guardian: Guardian, ports: PortPool, program: str) -> Subject:
    subject = Subject("toxiproxy", ports.take())
    argv = [program, "-host", "127.0.0.1", "-port", str(subject.port), "-proxy-metrics"]
    process = await guardian.spawn(Command(argv=argv), name="toxiproxy")

    async def answers() -> bool:
        return (await subject.call("GET", "/version")).status == 200

    await ready(process, answers, DEADLINE, what="its API")
    return subject


async def is_newer(subject: Subject) -> bool:
    """Is it of 2.13 or later? Servers built by Go's installer do not say, but a later one refuses this toxic."""
    proxy = '{"name":"version","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","enabled":false}'
    await subject.call("POST", "/proxies", proxy)
    answer = await subject.call("POST", "/proxies/version/toxics", '{"type":"slicer"}')
    await subject.call("DELETE", "/proxies/version")
    return answer.status == 400


async def start_ours(guardian: Guardian, ports: PortPool) -> Subject:
    return Subject("relay", (await RelayServer.start(guardian, "relay", ports.take())).port)
