"""HTTP without a client library: sends bytes that none would send, in clear text or inside TLS."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from multidict import CIMultiDict

from holdfast.check.context import Context
from holdfast.check.no_answer import how_it_ended
from holdfast.check.plain import plain

_LONGEST_HEAD = 1 << 20

# Heads that no client library writes; `{path}` is a call that the target serves.
BROKEN_HEADS = (
    "GARBAGE\r\n\r\n",
    "\x00\x01\x02\x03\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\r\n\r\n",
    "POST {path}\r\n\r\n",
    "POST {path} HTTP/1.1\r\nNo colon here\r\n\r\n",
    "POST {path} HTTP/1.1\r\n: no name\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nX-Evil: a\x00b\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1e3\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n{{}}",
    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{{}}\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\nX-Long: " + "a" * 100_000 + "\r\n\r\n",
    "POST {path} HTTP/1.1\r\nHost: x\r\n" + "X-Many: a\r\n" * 5_000 + "\r\n",
    "POST /" + "a" * 100_000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
)


@dataclass(frozen=True)
class RawAnswer:
    """What came back; status 0 when the connection ended without an answer, and `note` says how."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    note: str = ""


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Returns the bytes of a request; it is well-formed unless the given headers make it malformed."""
    sent = {"Host": "localhost", "Connection": "close", "Content-Type": "application/json", **headers}
    if not {"Content-Length", "Transfer-Encoding"} & sent.keys():
        sent["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body


async def exchange(
    context: Context,
    url: str,
    pieces: Sequence[bytes],
    *,
    within: float,
    tls: ssl.SSLContext | None = None,
    pause: float = 0.0,
    last: bool = False,
    break_off: bool = False,
) -> RawAnswer:
    """Sends the pieces with a pause between them and returns the answer, or a note of how the connection ended.

    `last` closes our side after the last piece, which only clear text can do; `break_off` ends the connection without
    reading an answer.
    """
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=_LONGEST_HEAD, ssl=tls)
    context.transcript.sent(f"{sum(map(len, pieces))} bytes, starting {plain(pieces[0][:60])}")
    try:
        # A target may refuse and close while we still write; its answer is then in our buffer already.
        with contextlib.suppress(ConnectionError):
            await _write(writer, pieces, pause)
            if last and writer.can_write_eof():
                writer.write_eof()
        if break_off:
            return RawAnswer(note="broken off")
        with context.call(within) as seconds:
            async with asyncio.timeout(seconds):
                return await _read(reader)
    except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.LimitOverrunError, ValueError) as error:
        return RawAnswer(note=how_it_ended(error))
    finally:
        writer.transport.abort()


async def _write(writer: asyncio.StreamWriter, pieces: Sequence[bytes], pause: float) -> None:
    for number, piece in enumerate(pieces):
        if number and pause:
            await asyncio.sleep(pause)
        writer.write(piece)
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> RawAnswer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = CIMultiDict[str]((name, value.strip()) for name, _, value in pairs)
    return RawAnswer(int(first.split(" ")[1]), headers, await _body(reader, headers))


async def _body(reader: asyncio.StreamReader, headers: CIMultiDict[str]) -> bytes:
    """Reads a body by its framing: chunks, a length, or until the target closes."""
    if headers.get("Transfer-Encoding", "").lower().endswith("chunked"):
        return await _chunks(reader)
    length = headers.get("Content-Length", "")
    if length.isdigit():
        return await reader.readexactly(int(length))
    body = b""
    while (piece := await reader.read(_LONGEST_HEAD)) and len(body) < _LONGEST_HEAD:
        body += piece
    return body


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    return body
