"""Findings in words, for what `expect` has no answer to compare: conditions, sockets, lists of what should not be."""

from collections.abc import Iterable

from holdfast.check.decisive import judged
from holdfast.check.finding import Finding, demand
from holdfast.conformance.admission.sockets import Socket


def none_of(found: Iterable[object], what: str, why: str = "") -> None:
    """Raises Finding if there is any of what should not be, and names them."""
    judged()
    if names := ", ".join(map(str, found)):
        raise Finding([f"no {what}"], names, why)


async def served(socket: Socket, why: str) -> None:
    """Raises Finding unless the socket acknowledges a heartbeat."""
    demand(await socket.answers(), "a heartbeat acknowledged", socket.describe(), why)


async def turned_down(socket: Socket, why: str) -> None:
    """Raises Finding unless the target has refused the socket: at the upgrade, or by a close before any frame."""
    demand(await socket.was_refused(), "the socket refused", socket.describe(), why)
