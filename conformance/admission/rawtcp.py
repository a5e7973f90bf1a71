"""Bytes that no client library would send: requests written by hand, WebSocket frames out of line."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from multidict import CIMultiDict

from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.wire import Answer, parse_body

_LONGEST_HEAD = 1 << 20


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A well-formed request, unless the headers given say otherwise."""
    said = {"Host": "localhost", "Connection": "close", "Content-Type": "application/json", **headers}
    if not {"Content-Length", "Transfer-Encoding"} & said.keys():
        said["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body


async def exchange(
    admission: Admission, pieces: Sequence[bytes], *, pause: float = 0.0, last: bool = False, break_off: bool = False
) -> Answer:
    """Send the pieces with a pause between them and read what comes back; status 0 when the connection just ended.

    `last` tells the target that no more will come; `break_off` ends the connection instead of reading.
    """
    url = urlsplit(admission.url())
    sent = time.monotonic()
    reader, writer = await asyncio.open_connection(url.hostname, url.port, limit=_LONGEST_HEAD)
    admission.context.transcript.sent(f"{sum(map(len, pieces))} bytes by hand: {pieces[0][:60]!r}")
    try:
        # Refused while we still write, the answer may lie in our buffer already.
        with contextlib.suppress(ConnectionError):
            await _write(writer, pieces, pause)
            if last:
                writer.write_eof()
        if break_off:
            return Answer(0, {}, None, "broken off", sent, time.monotonic())
        with admission.context.call(admission.patience) as seconds:
            async with asyncio.timeout(seconds):
                answer = await _read(reader, sent)
    except (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.LimitOverrunError) as error:
        answer = Answer(0, {}, None, repr(error), sent, time.monotonic())
    finally:
        writer.transport.abort()
    admission.context.transcript.received(answer.describe())
    return answer


async def _write(writer: asyncio.StreamWriter, pieces: Sequence[bytes], pause: float) -> None:
    for number, piece in enumerate(pieces):
        if number and pause:
            await asyncio.sleep(pause)
        writer.write(piece)
        await writer.drain()


async def _read(reader: asyncio.StreamReader, sent: float) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = CIMultiDict[str]((name, value.strip()) for name, _, value in pairs)
    length = headers.get("Content-Length", "")
    raw = await (reader.readexactly(int(length)) if length.isdigit() else reader.read(_LONGEST_HEAD))
    body, text = parse_body(raw)
    return Answer(int(first.split(" ")[1]), headers, body, text, sent, time.monotonic())


def frame(
    opcode: int, payload: bytes = b"", *, first: int = 0x80, masked: bool = True, claim: int | None = None
) -> bytes:
    """One WebSocket frame. `first` holds FIN and the reserved bits; `claim` is the length that it pretends to have."""
    length = len(payload) if claim is None else claim
    mask = 0x80 if masked else 0
    if length < 126:
        size = bytes([mask | length])
    elif length < 1 << 16:
        size = bytes([mask | 126]) + length.to_bytes(2)
    else:
        size = bytes([mask | 127]) + length.to_bytes(8)
    # A mask of zeros leaves the payload as it is.
    return bytes([first | opcode]) + size + (bytes(4) if masked else b"") + payload
