"""A cluster that rebalances, beside peers whose loads the suite chooses."""

import contextlib
from collections.abc import AsyncIterator

from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.client import REBALANCE_ON, Cluster
from holdfast.conformance.coordinator.ghost import Ghost, playing
from holdfast.conformance.coordinator.wire import HANDOFF


async def started(cluster: Cluster, *nodes: str) -> None:
    """Starts the nodes of a deployment by hand, with rebalancing switched on where the suite has to."""
    cluster.rebalances()
    if "rebalance" in cluster.context.target.settings:
        for node in cluster.deployment.nodes.values():
            node.configure(settings=REBALANCE_ON)
    await cluster.start(*nodes)
    await cluster.beats.first_of_all(nodes or cluster.nodes)


@contextlib.asynccontextmanager
async def peers(cluster: Cluster, *loads: int) -> AsyncIterator[list[Ghost]]:
    """Lets a ghost for each of these loads live during the block."""
    async with contextlib.AsyncExitStack() as stack:
        ghosts = [cluster.ghost() for _ in loads]
        for ghost, load in zip(ghosts, loads, strict=True):
            ghost.job_count = load
            await stack.enter_async_context(playing(ghost))
        yield ghosts


async def hands_off(cluster: Cluster, since: Moment, what: str) -> Moment:
    """Judges that a first handoff comes in time once the imbalance shows in heartbeats; returns when."""
    return (await cluster.entry_in_time(HANDOFF, bound="rebalance_trigger", since=since, what=what)).at
