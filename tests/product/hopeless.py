"""Targets that no client can work with, each on a port of its own, in a thread of the test."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_BODY = b'{"error": "no"}'
_HEAD = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY)
_CHUNK = 1 << 16


async def fails_at_everything(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """500 to each request, on connections that stay open."""
    while head := await _head(reader):
        await reader.readexactly(_length(head))
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\n" + _HEAD + _BODY)
        await writer.drain()


async def fails_at_every_attempt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """500 to each request of a client, on connections that stay open; administration calls succeed."""
    while head := await _head(reader):
        await reader.readexactly(_length(head))
        status = b"200 OK" if head.startswith(b"PUT /admin/") else b"500 Internal Server Error"
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + _HEAD + _BODY)
        await writer.drain()


async def never_answers(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    while await reader.read(_CHUNK):
        pass


async def answers_a_byte_a_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _head(reader)
    for byte in b"HTTP/1.1 200 OK\r\n" + _HEAD + _BODY:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1)


@contextlib.contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """The URL at which it listens, for as long as the block runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=answer.__name__)
    thread.start()

    def there(work: Awaitable[int | None]) -> int | None:
        async def wait() -> int | None:
            return await work

        return asyncio.run_coroutine_threadsafe(wait(), loop).result()

    target = _Server(answer)
    try:
        yield f"http://127.0.0.1:{there(target.open())}"
    finally:
        there(target.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Server:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await self._answer(reader, writer)
        writer.close()
        self._open.discard(task)


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
