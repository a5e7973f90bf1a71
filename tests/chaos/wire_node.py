"""A node for tests that speaks HTTP, gRPC, QUIC and plain UDP, and asks its peers over gRPC.

GET /ask/b answers what b says to a gRPC call, GET /get/b what it says to a GET, or 502. The QUIC and UDP ports echo.

PORT=…  GRPC_PORT=…  QUIC_PORT=…  UDP_PORT=…  CERTS=…  PEERS=b=http://…,c=http://…  [http_proxy=…]
"""

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
from aiohttp import ClientError, ClientSession, ClientTimeout, web

from holdfast.fixtures.certs import CERTIFICATE, KEY

TIMEOUT = 1.5
METHOD = "/echo.Echo/Say"
ALPN = ["echo"]


async def here(_: web.Request) -> web.Response:
    return web.Response(text=os.environ["PORT"])


async def ask(request: web.Request) -> web.Response:
    try:
        return web.Response(text=await say(peer_url(request), "who"))
    except grpc.aio.AioRpcError as error:
        return web.Response(status=502, text=error.details())


async def get(request: web.Request) -> web.Response:
    patience = ClientTimeout(TIMEOUT)
    try:
        async with ClientSession(timeout=patience) as session, session.get(peer_url(request)) as reply:
            return web.Response(text=await reply.text(), status=reply.status)
    except (ClientError, TimeoutError) as error:
        return web.Response(status=502, text=repr(error))


def peer_url(request: web.Request) -> str:
    return dict(one.split("=", 1) for one in os.environ["PEERS"].split(","))[request.match_info["peer"]]


async def say(url: str, word: str) -> str:
    """Make one call on a channel of its own; grpc.aio uses the proxy that `http_proxy` names."""
    async with grpc.aio.insecure_channel(urlsplit(url).netloc) as channel:
        call: Any = channel.unary_unary(METHOD)  # bytes as they are, without a generated stub
        answer: bytes = await call(word.encode(), timeout=TIMEOUT)
        return answer.decode()


async def answer(request: bytes, _: Any) -> bytes:
    return os.environ["GRPC_PORT"].encode() if request == b"who" else request


async def serve_grpc(port: int) -> grpc.aio.Server:
    server = grpc.aio.server()
    handlers: Any = {"Say": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo.Echo", handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    return server


async def serve_quic(port: int, certificates: Path) -> None:
    from aioquic.asyncio.server import serve
    from aioquic.quic.configuration import QuicConfiguration

    configuration = QuicConfiguration(is_client=False, alpn_protocols=ALPN)
    configuration.load_cert_chain(certificates / CERTIFICATE, certificates / KEY)
    answers: set[asyncio.Task[None]] = set()

    def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.add(asyncio.ensure_future(_echo(reader, writer)))

    await serve("127.0.0.1", port, configuration=configuration, stream_handler=echo)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read())
    writer.write_eof()


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        self._transport.sendto(data, address)


async def serve(app: web.Application) -> None:
    app["grpc"] = await serve_grpc(int(os.environ["GRPC_PORT"]))
    await serve_quic(int(os.environ["QUIC_PORT"]), Path(os.environ["CERTS"]))
    place = ("127.0.0.1", int(os.environ["UDP_PORT"]))
    await asyncio.get_running_loop().create_datagram_endpoint(Echo, local_addr=place)


def main(_argv: list[str]) -> None:
    app = web.Application()
    app.on_startup.append(serve)
    app.add_routes([web.get("/", here), web.get("/ask/{peer}", ask), web.get("/get/{peer}", get)])
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), print=None)
