"""Connections that break at the wrong moment, on the loop that a run uses."""

import asyncio
import contextlib
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator

import pytest

from holdfast.run.loops import new_loop

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
TRIES = 20


@contextlib.contextmanager
def resetting() -> Iterator[int]:
    """A port that resets every connection before a byte is sent."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listener.accept()
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                accepted.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


async def reset_in_tls(port: int) -> bool:
    """Whether a file descriptor still belongs to the one that got its number after the connection broke."""
    loop = asyncio.get_running_loop()
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setblocking(False)
    reset = select.poll()
    reset.register(sock, 0)
    assert reset.poll(5000), "the reset has arrived"
    number, context = sock.fileno(), ssl.create_default_context()
    with contextlib.suppress(OSError):
        await loop.create_connection(asyncio.Protocol, sock=sock, ssl=context, server_hostname="x")
    others: list[int] = []
    while number not in others and len(others) < TRIES:
        others.append(os.open(os.devnull, os.O_RDONLY))
    del sock
    try:
        return all(_is_open(other) for other in others)
    finally:
        for other in others:
            with contextlib.suppress(OSError):
                os.close(other)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_connection_that_is_reset_closes_nobody_elses_descriptor() -> None:
    async def run(port: int) -> list[bool]:
        return [await reset_in_tls(port) for _ in range(TRIES)]

    with resetting() as port, contextlib.closing(new_loop()) as loop:
        assert all(loop.run_until_complete(run(port)))


def test_only_what_a_closed_connection_runs_into_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        transport, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname())
        transport.abort()
        await asyncio.sleep(0.1)
        with pytest.raises(RuntimeError) as closed:
            transport.write(b"too late")
        loop.call_exception_handler({"message": "first", "exception": closed.value, "transport": transport})
        loop.call_exception_handler({"message": "second", "exception": RuntimeError("another"), "transport": transport})
        server.close()

    with contextlib.closing(new_loop()) as loop:
        loop.run_until_complete(run())
    assert "first" not in caplog.text
    assert "second" in caplog.text
