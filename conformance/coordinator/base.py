"""What every part of the kit stands on: the check's context and time, the nodes, and the channels.

Parts (`beats`, `groups`, `lock`, `store` …) get a `Base`; the driver (`client.Cluster`) is one, and holds the parts.
Here are the few things that all of them do: wait for an entry of a channel, and know which node has which id.

**Ids.** A coordinator says its id in its heartbeats. Where the descriptor starts a node under a name (`{node}`) the two
are the same; `[dialect] node_ids` names those that differ, and else the process id in a heartbeat tells. What stays
unknown is not-observable.
"""

import re
from collections.abc import Callable
from typing import ClassVar

from holdfast.check.context import Context
from holdfast.check.finding import NotObservable, demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.bus import Bus, Entry
from holdfast.conformance.coordinator.wire import BEAT
from holdfast.conformance.shared.driver import Driver
from holdfast.target.deployment import Deployment

# Whether an entry is the one that is waited for.
Where = Callable[[Entry], bool]


def any_entry(_entry: Entry) -> bool:
    return True


def of_job(job_id: str, reason: str = "") -> Where:
    """Fits entries about this job; of handoffs only those with this reason, if one is given."""
    return lambda entry: entry.message.job_id == job_id and (not reason or entry.message.reason == reason)


class Base(Driver):
    """A check's nodes and channels."""

    settled: ClassVar[str] = "event_latency"

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        if not self.deployment.store_url:
            raise NotObservable("[observe] redis")
        self.dialect = context.target.dialect
        self.bus = Bus.of(context, self.deployment)
        self.names = self.bus.names
        self._ids: dict[str, str] = {str(id_): str(node) for node, id_ in self.dialect.get("node_ids", {}).items()}

    @property
    def owns_deployment(self) -> bool:
        """Whether the deployment is this check's alone and ends with it."""
        return self.context.target.startable and self.context.spec.isolation != "shared"

    def judges(self, owner: str) -> bool:
        """Whether this check verifies that row."""
        return any(claim.id == owner for claim in self.context.spec.claims)

    # --- waiting for entries

    async def found(
        self, kind: str, where: Where = any_entry, *, since: Moment | None = None, **ids: str
    ) -> list[Entry]:
        """Returns the entries of a channel that fit, written since then."""
        start = since.lo if since else 0.0
        return [each for each in await self.bus.entries(kind, **ids) if each.at.hi >= start and where(each)]

    async def entry(
        self,
        kind: str,
        where: Where = any_entry,
        *,
        give_up: float,
        what: str,
        since: Moment | None = None,
        count: int = 1,
        **ids: str,
    ) -> Entry:
        """Waits for the `count`-th such entry; returns it, with the moment at which it was written (`at`).

        Raises Finding after `give_up` seconds from `since` on. Its time is for the check to judge:
        `T.at_most("crash_handoff", since=last_beat.at, seen=entry.at, tolerance="tolerance")`.
        """

        async def look() -> Entry | None:
            fitting = await self.found(kind, where, since=since, **ids)
            return fitting[count - 1] if len(fitting) >= count else None

        seen, _ = await self.T.until(look, give_up=give_up, since=since, what=what)
        return seen

    async def entry_in_time(
        self,
        kind: str,
        where: Where = any_entry,
        *,
        bound: str,
        since: Moment,
        what: str,
        count: int = 1,
        **ids: str,
    ) -> Entry:
        """Waits for the `count`-th such entry and judges it against a bound of ours, counted from `since`."""
        give_up = self.never(bound)
        seen = await self.entry(kind, where, give_up=give_up, what=what, since=since, count=count, **ids)
        self.T.at_most(bound, since=since, seen=seen.at, what=what)
        return seen

    async def no_entry(self, kind: str, where: Where = any_entry, *, since: Moment, why: str, **ids: str) -> None:
        """Judges that no such entry has been written since then. A check says first for how long it waited."""
        found = await self.found(kind, where, since=since, **ids)
        demand(not found, "no such entry", "; ".join(each.describe() for each in found[:5]), why)

    # --- ids of nodes

    async def node_ids(self) -> dict[str, str]:
        """Returns the name of the node for each id that has beaten, as far as it is known."""
        for beat in await self.bus.entries(BEAT):
            id_ = beat.message.node_id
            if id_ and id_ not in self._ids and (name := self._name_of(id_, beat.message.whole("processId"))):
                self._ids[id_] = name
        return dict(self._ids)

    def _name_of(self, id_: str, pid: int | None) -> str:
        if id_ in self.deployment.nodes:
            return id_
        pids = {node.pid: name for name, node in self.deployment.nodes.items() if node.pid}
        return pids.get(pid, "") if pid else ""

    async def id_of(self, node: str) -> str:
        """Returns the id of a node; of one that was started under several ids the last one.

        Raises NotObservable where nothing tells it.
        """
        found = [id_ for id_, name in (await self.node_ids()).items() if name == node]
        if not found and self._told_its_name(node):
            return node
        if not found:
            raise NotObservable("[dialect] node_ids")
        return found[-1]

    async def node_of(self, id_: str) -> str:
        """Returns the name of the node with this id; "" for an id of none of them, such as a ghost's."""
        return (await self.node_ids()).get(id_, id_ if id_ in self.deployment.nodes else "")

    def _told_its_name(self, node: str) -> bool:
        """Whether the descriptor starts the node under its own name."""
        spec = self.deployment.nodes[node].spec
        return spec.start is not None and self.context.target.mentions(spec, "{node}")

    async def named_in(self, text: str) -> str:
        """Returns the id that a text names, such as a consumer or the value of the lock; "" if it names none."""
        known = {*await self.node_ids(), *self.deployment.nodes}
        if text in known:
            return text
        inside = [id_ for id_ in known if re.search(rf"(?<![0-9A-Za-z]){re.escape(id_)}(?![0-9A-Za-z])", text)]
        return max(inside, key=len, default="")
