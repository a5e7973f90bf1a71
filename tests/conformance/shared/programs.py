"""A small node for the tests of drivers: HTTP, JSON events on standard output, one setting that it may refuse."""

import asyncio
import json
import os
import sys

from aiohttp import web


def main(_argv: list[str]) -> None:
    greeting = os.environ.get("GREETING", "hello")
    if greeting == "refused":
        sys.stderr.write("GREETING must not be 'refused'.\n")
        raise SystemExit(3)
    asyncio.run(_serve(int(os.environ["PORT"]), greeting))


async def _serve(port: int, greeting: str) -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        match request.path:
            case "/metrics":
                return web.Response(text="# TYPE greetings gauge\ngreetings 2.0\n")
            case "/slow":
                await asyncio.sleep(30)
            case "/ends":
                if request.transport:
                    request.transport.abort()
            case "/brief":
                if request.transport:
                    asyncio.get_running_loop().call_later(0.05, request.transport.close)
        said = json.loads(await request.read() or b"{}")
        print(json.dumps({"event": "greeted", "path": request.path, **said}), flush=True)  # noqa: T201 - its log
        return web.json_response({"greeting": greeting, **said})

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()
