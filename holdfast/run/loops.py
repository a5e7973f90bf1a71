"""The event loop of a run: uvloop's, less what it gets wrong about connections that break at the wrong moment."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any


def new_loop() -> asyncio.AbstractEventLoop:
    try:
        loop = _careful_loop()
    except ImportError:
        return asyncio.new_event_loop()
    loop.set_exception_handler(_forget_handshakes)
    return loop


def _careful_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    class Loop(uvloop.Loop):
        """A TLS connection that is reset before its first word leaves uvloop's transport closed and its socket not.

        The socket would close the same number once more when it is collected, and by then the number may belong to any
        other part of the process (uvloop 0.23).
        """

        async def create_connection(
            self,
            protocol_factory: Callable[[], asyncio.BaseProtocol],
            *args: Any,
            sock: socket.socket | None = None,
            **kwargs: Any,
        ) -> Any:
            try:
                return await super().create_connection(protocol_factory, *args, sock=sock, **kwargs)
            except BaseException:
                if sock is not None:
                    sock.detach()
                raise

    return Loop()


def _forget_handshakes(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Of a connection that is given up while it shakes hands uvloop leaves a future behind that nobody waits for."""
    if "future" not in context or not isinstance(context.get("exception"), ssl.SSLError):
        loop.default_exception_handler(context)
