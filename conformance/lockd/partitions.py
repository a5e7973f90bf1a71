"""Partitions between nodes; our own calls to them go on."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import permutations

from holdfast.conformance.lockd.client import Lockd
from holdfast.fault import Option
from holdfast.faults import Faults
from holdfast.timeline import Moment

Pair = tuple[str, str]


def around(lockd: Lockd, node: str) -> list[Pair]:
    """Every way to this node and from it."""
    return [pair for pair in permutations(lockd.nodes, 2) if node in pair]


def towards(lockd: Lockd, node: str) -> list[Pair]:
    return [(other, node) for other in lockd.others(node)]


@asynccontextmanager
async def struck(faults: Faults, kind: str, pairs: Iterable[Pair], **options: Option) -> AsyncIterator[Moment]:
    """One fault on each of these ways; from when the first was asked for until the last was in force."""
    async with AsyncExitStack() as stack:
        windows = [
            await stack.enter_async_context(faults.during(kind, f"{source}-{target}", **options))
            for source, target in pairs
        ]
        yield Moment(windows[0].asked, windows[-1].in_force)
