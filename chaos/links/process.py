"""The process that serves the links of one deployment.

    main([control, notes])

It runs in its own process, so that a stalled harness does not stall the target. `control` is the path of the unix
socket on which it takes requests as JSON lines (`open`, the verbs of a link, `counters`, `close`); `notes` is the file
for what passes on links that are opened with `tap` (`holdfast.chaos.tap`). Requests are answered in turn, each once it
is in force; a wrong one is answered with `error`, and the links go on.

It serves one client: when that client closes the control socket, or on SIGTERM, it resets every connection and ends
with status 0. So the links of a run never outlive the runner, even before the guardian kills them.
"""

import asyncio
import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvloop

from holdfast.chaos.links.link import Link
from holdfast.chaos.tap.link import Notes, TappedLink

Message = dict[str, Any]

VERBS = ("delay", "stall", "refuse", "cut", "lead_to", "heal", "rewrite")


class Links:
    def __init__(self, notes: Path) -> None:
        self._links: dict[str, Link] = {}
        self._notes = Notes(notes)

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
            raise ValueError("there is one of this name already; choose another")
        link = TappedLink(name, self._notes, **fields) if fields.pop("tap", False) else Link(**fields)
        link.listen()
        self._links[name] = link
        return {"port": link.port}

    def _find(self, name: str) -> Link:
        if name not in self._links:
            raise ValueError(f"not open; open are {sorted(self._links)}")
        return self._links[name]

    async def close(self) -> None:
        for link in self._links.values():
            await link.close()
        self._notes.close()


async def serve(control: Path, notes: Path) -> None:
    links = Links(notes)
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
    uvloop.run(serve(Path(argv[0]), Path(argv[1])))
