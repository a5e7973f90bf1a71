"""A node for tests that asks its peers: GET /ask/b answers what b answers to GET /, or 502.

PORT=…  PEERS=b=http://…,c=http://…  [http_proxy=…]
"""

import asyncio
import os
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, web

PATIENCE = 1.0


async def here(_: web.Request) -> web.Response:
    return web.Response(text=os.environ["PORT"])


async def ask(request: web.Request) -> web.Response:
    peers = dict(one.split("=", 1) for one in os.environ["PEERS"].split(","))
    try:
        async with ClientSession(timeout=ClientTimeout(PATIENCE)) as session:
            return web.Response(text=await _said(session, peers[request.match_info["peer"]]))
    except (ClientError, TimeoutError, OSError) as error:
        return web.Response(status=502, text=str(error))


async def _said(session: ClientSession, url: str) -> str:
    """Through CONNECT where there is a proxy; aiohttp uses that for https alone, so it is spoken here."""
    proxy = os.environ.get("PROXY", "")
    if not proxy:
        async with session.get(url) as answer:
            return await answer.text()
    place, far = urlsplit(proxy), urlsplit(url)
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            writer.write(f"CONNECT {far.netloc} HTTP/1.1\r\nHost: {far.netloc}\r\n\r\n".encode())
            if not (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 "):
                raise ClientError("the proxy says no")
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return (await reader.read()).partition(b"\r\n\r\n")[2].decode()
        except asyncio.IncompleteReadError as error:
            raise ClientError("the connection ended") from error
        finally:
            writer.close()


def main(_argv: list[str]) -> None:
    app = web.Application()
    app.add_routes([web.get("/", here), web.get("/ask/{peer}", ask)])
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), print=None)
