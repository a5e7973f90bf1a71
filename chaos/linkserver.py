"""The process that serves the links of one deployment; on the harness's own loop our stall would become the target's.

    main([control])

`control` is the path of the unix socket where it takes requests from the one client that it has, as JSON lines, each
answered once it is in force. It leaves when that client does, or on SIGTERM.
"""

import asyncio
import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvloop

from holdfast.chaos.link import Link

Message = dict[str, Any]

VERBS = ("delay", "stall", "refuse", "cut", "lead_to", "heal")


class Links:
    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    async def answer(self, request: Message) -> Message:
        number, op, name = request.pop("number"), request.pop("op"), request.pop("link")
        try:
            return {"number": number} | await self._do(op, name, request)
        except (OSError, ValueError) as error:
            return {"number": number, "error": f"link {name}: {error}"}

    async def _do(self, op: str, name: str, fields: Message) -> Message:
        if op == "open":
            return self._open(name, fields)
        link = self._find(name)
        if op in VERBS:
            await getattr(link, op)(**fields)
            return {}
        if op == "counters":
            return {"counters": asdict(await link.counters())}
        if op == "close":
            await self._links.pop(name).close()
            return {}
        raise ValueError(f"no request {op!r}")

    def _open(self, name: str, fields: Message) -> Message:
        if name in self._links:
            raise ValueError("there is one of this name already")
        link = Link(**fields)
        link.listen()
        self._links[name] = link
        return {"port": link.port}

    def _find(self, name: str) -> Link:
        if name not in self._links:
            raise ValueError(f"not open; there are {sorted(self._links)}")
        return self._links[name]

    async def close(self) -> None:
        for link in self._links.values():
            await link.close()


async def serve(control: Path) -> None:
    links = Links()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await links.answer(json.loads(line))).encode() + b"\n")
        finally:
            writer.close()
            over.set()

    server = await asyncio.start_unix_server(talk, control)
    await over.wait()
    server.close()
    await links.close()


def main(argv: list[str]) -> None:
    uvloop.run(serve(Path(argv[0])))
