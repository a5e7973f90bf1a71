"""Ports that belong to a check while it runs."""

import socket

from holdfast.check.context import Context


def kept_port(context: Context) -> int:
    """Takes a port until the check ends: bound and not listening, so that calls to it are refused.

    A socket that listens there with SO_REUSEPORT has it to itself. Whenever it is closed, no outgoing connection
    gets the port.
    """
    family, *_, address = socket.getaddrinfo(context.target.harness["bind"], 0, type=socket.SOCK_STREAM)[0]
    kept = socket.socket(family)
    context.stack.callback(kept.close)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    kept.bind(address)
    port: int = kept.getsockname()[1]
    return port
