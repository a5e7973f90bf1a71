"""Helpers of the tests: read a stream, see how it ends, reset a connection."""

import asyncio
import socket
import struct

GRACE = 5.0  # seconds that a loaded machine may take for something immediate
PROBE = 0.2  # seconds to watch for something that must not happen


async def read(reader: asyncio.StreamReader, size: int) -> bytes:
    return await asyncio.wait_for(reader.readexactly(size), GRACE)


async def end_of(reader: asyncio.StreamReader) -> str:
    """How the stream ends, whatever comes before."""
    try:
        await asyncio.wait_for(reader.read(), GRACE)
    except ConnectionResetError:
        return "reset"
    return "end"


async def stays_silent(reader: asyncio.StreamReader) -> bool:
    reading = asyncio.ensure_future(reader.read(1))
    done, _ = await asyncio.wait([reading], timeout=PROBE)
    if done:
        return False
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    return True


def abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
