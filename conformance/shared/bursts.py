"""Many calls at the same moment, for drivers whose checks are about what happens then."""

import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from holdfast.conformance.shared.http import HttpDriver
from holdfast.conformance.shared.wire import Answer

A = TypeVar("A", bound=Answer)
R = TypeVar("R")


class BurstDriver(HttpDriver[A]):
    """A driver that can make calls at once over connections that are open already."""

    @property
    def fronts(self) -> Sequence[str]:
        """The nodes that calls go to unless a check names others."""
        return self.nodes[:1]

    @abstractmethod
    async def warm(self, nodes: Sequence[str], count: int) -> None:
        """Opens this many connections to each node: each carries one harmless call, all of them at the same time."""

    async def burst(
        self, calls: Sequence[Callable[[], Awaitable[R]]], *, nodes: Sequence[str] = (), at_once: int | None = None
    ) -> list[R]:
        """Makes all calls at once over connections that are open already; returns the results in order.

        A handshake takes longer than a call, so over fresh connections the first would be decided before the last was
        sent, and a target that can't tell them apart would not be noticed. `nodes` are those that the calls go to.
        """
        places = list(nodes) or list(self.fronts)
        most = min(len(calls), at_once or self.at_once or len(calls))
        await self.warm(places, math.ceil(most / len(places)))
        return await self.parallel(calls, at_once)
