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
    loop.set_exception_handler(_forget_what_is_over)
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


def _forget_what_is_over(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Passes on what went wrong in the loop, but for two things that uvloop tells of connections nobody uses any more.

    Of one that is given up while it shakes hands it leaves a future behind that nobody waits for. Of one that is closed
    it still reads what has arrived, and may try to answer it.
    """
    error = context.get("exception")
    given_up = "future" in context and isinstance(error, ssl.SSLError)
    # By its text: a transport that ended by an error does not say of itself that it is closing.
    closed = isinstance(error, RuntimeError) and "handler is closed" in str(error)
    if not given_up and not closed:
        loop.default_exception_handler(context)
