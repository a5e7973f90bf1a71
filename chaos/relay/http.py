"""A small HTTP/1.1 server for the API, because its clients depend on exact statuses, types and empty bodies."""

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import unquote

LINE_LIMIT = 1 << 16
BODY_LIMIT = 16 << 20
IDLE_LIMIT = 60.0
READ_LIMIT = 15.0
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class BadRequestError(ValueError):
    """Not HTTP, or a body above the limit."""


Handler = Callable[[Request], Awaitable[Reply]]


class HttpServer:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._begin, host, port, limit=LINE_LIMIT)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Our own task, which close() cancels: those that asyncio makes outlive its server.
        talk = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, TimeoutError, EOFError):
                while await self._turn(reader, writer):
                    pass
        finally:
            writer.close()

    async def _turn(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another may follow on the connection."""
        try:
            request = await _read(reader, writer)
        except (BadRequestError, ValueError, asyncio.LimitOverrunError) as error:
            writer.write(_bytes(Reply(400, f"400 Bad Request: {error}".encode(), TEXT_TYPE), head=False, last=True))
            await writer.drain()
            return False
        if request is None:
            return False
        last = request.headers.get("connection", "").lower() == "close"
        reply = await self._handled(request)
        writer.write(_bytes(reply, head=request.method == "HEAD", last=last))
        await writer.drain()
        return not last

    async def _handled(self, request: Request) -> Reply:
        try:
            return await self._handler(request)
        except Exception:  # noqa: BLE001 - a bug: the log has the traceback, the client a sentence
            traceback.print_exc()
            return Reply(500, b"internal error; see the relay's log\n", TEXT_TYPE)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    async with asyncio.timeout(IDLE_LIMIT):
        first = await reader.readline()
    if not first.strip():
        return None
    async with asyncio.timeout(READ_LIMIT):
        method, target, headers = await _read_head(first, reader)
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _read_body(headers, reader)
    path, _, query = target.partition("?")
    return Request(method, unquote(path, errors="replace"), query, headers, body)


async def _read_head(first: bytes, reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]]:
    words = first.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequestError("malformed request line")
    headers: dict[str, str] = {} if words[2] == "HTTP/1.1" else {"connection": "close"}
    while line := (await reader.readline()).strip():
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise BadRequestError("malformed header")
        headers[name.lower()] = value.strip()
    return words[0], words[1], headers


async def _read_body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunked(reader)
    return await reader.readexactly(_size(headers.get("content-length", "0"), 10))


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := _size((await reader.readline()).split(b";")[0].decode("latin-1").strip(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
        _size(str(len(body)), 10)
    while (await reader.readline()).strip():  # trailers
        pass
    return body


def _size(text: str, base: int) -> int:
    size = int(text, base)
    if not 0 <= size <= BODY_LIMIT:
        raise BadRequestError(f"a body of {size} bytes; at most {BODY_LIMIT} are taken")
    return size


def _bytes(reply: Reply, *, head: bool, last: bool) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if reply.type:
        lines.append(f"Content-Type: {reply.type}")
    if reply.status != HTTPStatus.NO_CONTENT:
        lines.append(f"Content-Length: {len(reply.body)}")
    lines.append(f"Date: {formatdate(usegmt=True)}")
    if last:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if head else reply.body)
