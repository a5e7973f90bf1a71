"""The driver: a cluster of coordinators as a check sees it. Checks talk to the target only through it.

`Cluster` holds the parts of the kit, each a module of its own, and does what concerns whole nodes: who leads, ends and
new starts, under the old id or a new one. The package's docstring shows the way around.
"""

import time
from functools import partial
from typing import Self

from holdfast.check.context import Context
from holdfast.check.finding import Finding, NotApplicable, NotObservable
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.beats import Beat, Beats
from holdfast.conformance.coordinator.ghost import Ghost
from holdfast.conformance.coordinator.groups import Groups
from holdfast.conformance.coordinator.jobs import Jobs
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.lock import Lock
from holdfast.conformance.coordinator.store import Store
from holdfast.conformance.coordinator.worker import Worker
from holdfast.target.deployment import Deployment, StartError

REBALANCE_ON = {"rebalance": "true"}


class Cluster(Base):
    """One deployment of the target, and everything that a check asks of it."""

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        self.lock = Lock(self)
        self.beats = Beats(self)
        self.groups = Groups(self)
        self.store = Store(self)
        self.worker = Worker(self)
        self.jobs = Jobs(self, self.beats, self.groups, self.worker)

    @classmethod
    async def provide(cls, context: Context) -> Self:
        cluster = cls(context, await context.get(SpecTime))
        await cluster.bus.open()
        return cluster

    async def another(self) -> Self:
        """Returns a driver for one more deployment like the check's own."""
        twin = type(self)(self.context, self.T, await self.context.another())
        await twin.bus.open()
        return twin

    # --- nodes

    @property
    def alone(self) -> str:
        """The only node. Raises NotObservable where the target's deployment is fixed and has more."""
        if len(self.nodes) > 1:
            raise NotObservable("[[node]] start", "a deployment of a single node")
        return self.nodes[0]

    @property
    def live(self) -> list[str]:
        """The nodes that run, as far as we know: of a node that others run, always."""
        return [name for name, node in self.deployment.nodes.items() if node.pid or not self.context.target.startable]

    def ghost(self) -> Ghost:
        """Returns a ghost that does nothing yet; `async with playing(cluster.ghost()) as ghost` lets it live."""
        return Ghost(self, self.beats, self.groups)

    def leave(self, node: str) -> Leaving:
        """Sends SIGTERM to a node and returns its drain, which goes on beside the check."""
        return Leaving(self, node)

    async def start(self, *nodes: str) -> Moment:
        """Starts these nodes, or all, of a deployment that the check starts by hand; returns when."""
        asked = self.T.now()
        self.context.transcript.note(f"start {', '.join(nodes or self.nodes)}")
        try:
            await self.deployment.start_nodes(*nodes)
        except StartError as error:
            raise Finding(["the nodes to start"], str(error).partition(";")[0], late=True) from error
        return Moment(asked.lo, time.monotonic())

    async def start_new(self, **settings: str) -> tuple[str, Moment]:
        """Starts one more node, under an id that the cluster has never seen; returns its name, and when."""
        self._require_settings(settings)
        if not self.context.target.startable:
            raise NotObservable("[[node]] start", "a node under a new id")
        asked = self.T.now()
        name = f"new-{len(self.deployment.nodes) + 1}"
        self.context.transcript.note(f"start {name}")
        role = self.deployment.nodes[self.nodes[0]].role
        try:
            await self.deployment.start_node(role, name=name, settings=settings)
        except StartError as error:
            raise Finding([f"{name} to start"], str(error).partition(";")[0], late=True) from error
        self.nodes.append(name)
        return name, Moment(asked.lo, time.monotonic())

    async def kill_all(self) -> Moment:
        """Kills all nodes that run, at once; returns when."""
        asked = self.T.now()
        names = self.live
        await self.parallel([partial(self.kill, name) for name in names])
        return Moment(asked.lo, time.monotonic())

    async def restart_all(self, *nodes: str) -> Moment:
        """Starts these nodes again under their ids, at once; returns when."""
        asked = self.T.now()
        await self.parallel([partial(self.restart, name) for name in nodes or self.nodes])
        return Moment(asked.lo, time.monotonic())

    # --- who leads

    async def leader(self) -> str:
        """Waits until somebody leads; returns the name of that node.

        Its value in the lock contains its id, or its heartbeats since then say Leader.
        """
        sample = await self.lock.led()
        node = await self.leader_by(sample.value)
        return node or (await self._leader_by_role(sample.moment)).node_id

    async def leader_by(self, value: str) -> str:
        """Returns the name of the node that put this value into the lock; "" if the value names none."""
        id_ = await self.named_in(value)
        return await self.node_of(id_) if id_ else ""

    async def _leader_by_role(self, since: Moment) -> Beat:
        """Waits for the heartbeat of a leader."""

        async def look() -> Beat | None:
            return next((each for each in await self.beats.all(since=since) if each.role == "Leader"), None)

        with self.context.arranging("CO-BEAT-04"):
            give_up = 2 * (self.T.heartbeat_interval + self.T.tolerance)
            beat, _ = await self.T.until(look, give_up=give_up, since=since, what="a heartbeat of the leader")
        return beat

    async def followers(self) -> list[str]:
        """Waits until somebody leads; returns the other nodes that run."""
        leader = await self.leader()
        return [name for name in self.live if name != leader]

    # --- what a target offers

    def rebalances(self) -> None:
        """Raises NotApplicable for a target that does not rebalance: the document leaves that open."""
        if not self.dialect.get("rebalance") and "rebalance" not in self.context.target.settings:
            raise NotApplicable("the descriptor declares no rebalancing")
