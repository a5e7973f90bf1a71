"""Heartbeats of the coordinators as a check reads them: who beats, how many jobs each counts, who leads.

All of it is on the wire: heartbeats are a topic that everybody may read. Entry times count, never the time in the
message.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.check.finding import demand
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.wire import BEAT, LEADER


@dataclass(frozen=True)
class Beat:
    """One heartbeat."""

    node_id: str
    job_count: int | None
    role: str
    status: str
    at: Moment
    entry: Entry

    def describe(self) -> str:
        words = [self.node_id, f"jobCount {self.job_count}", self.role, self.status]
        return " ".join(word for word in words if word)


def _beat(entry: Entry) -> Beat:
    said = entry.message
    return Beat(said.node_id, said.job_count, said.role, said.node_status, entry.at, entry)


class Beats:
    """The heartbeats of one deployment. Ids of ghosts are in `ghosts` and count as nobody's."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self.ghosts: set[str] = set()

    async def all(self, *, since: Moment | None = None, until: Moment | None = None) -> list[Beat]:
        """Returns the heartbeats of real coordinators, oldest first, of a time if one is given."""
        lo, hi = since.lo if since else 0.0, until.hi if until else float("inf")
        found = (_beat(entry) for entry in await self._base.bus.entries(BEAT))
        return [each for each in found if each.node_id not in self.ghosts and lo <= each.at.hi and each.at.lo <= hi]

    async def of(self, node: str, *, since: Moment | None = None, until: Moment | None = None) -> list[Beat]:
        """Returns the heartbeats of one node, under whichever id."""
        ids = {id_ for id_, name in (await self._base.node_ids()).items() if name == node} or {node}
        return [each for each in await self.all(since=since, until=until) if each.node_id in ids]

    async def last(self, node: str, *, before: Moment | None = None) -> Beat:
        """Returns the last heartbeat of a node, before a moment if one is given; waits for the first one."""

        async def look() -> Beat | None:
            return next(reversed(await self.of(node, until=before)), None)

        with self._base.context.arranging("CO-BEAT-01"):
            give_up = self._wait
            beat, _ = await self._base.T.until(look, give_up=give_up, what=f"a heartbeat of {node}")
        return beat

    async def next(self, node: str, *, since: Moment, fits: Callable[[Beat], bool] = lambda _: True) -> Beat:
        """Waits for the next heartbeat of a node after a moment, of those that fit."""

        async def look() -> Beat | None:
            return next(
                (each for each in await self.of(node, since=since) if each.at.lo >= since.hi and fits(each)), None
            )

        with self._base.context.arranging("CO-BEAT-01"):
            beat, _ = await self._base.T.until(
                look, give_up=self._wait, since=since, what=f"the next heartbeat of {node}"
            )
        return beat

    @property
    def _wait(self) -> float:
        T = self._base.T
        return T.start_up + 2 * (T.heartbeat_interval + T.tolerance)

    async def first_of_all(self, nodes: Iterable[str]) -> dict[str, Beat]:
        """Waits until each of these nodes has beaten; returns its first heartbeat."""
        for node in (names := list(nodes)):
            await self.last(node)
        return {node: (await self.of(node))[0] for node in names}

    # --- load figures

    async def counts(self, nodes: Iterable[str], *, since: Moment | None = None) -> dict[str, int]:
        """Returns the jobCount of the last heartbeat of each node; nodes without one (since then) are missing."""
        found = {node: await self.of(node, since=since) for node in nodes}
        return {node: beats[-1].job_count or 0 for node, beats in found.items() if beats}

    async def add_up(
        self, nodes: Sequence[str], total: int, bound: str, *, since: Moment, what: str = ""
    ) -> dict[str, int]:
        """Waits until the last heartbeats of these nodes, all since then, count so many jobs; judges the time.

        Returns the figure of each node.
        """

        async def look() -> dict[str, int] | None:
            seen = await self.counts(nodes, since=since)
            return seen if len(seen) == len(nodes) and sum(seen.values()) == total else None

        what = what or f"heartbeats that count {total} jobs in all"
        found, _ = await self._base.comes(look, bound, since=since, what=what)
        return found

    async def shows(self, node: str, fits: Callable[[Beat], bool], bound: str, *, since: Moment, what: str) -> Beat:
        """Waits for a heartbeat of the node, written since then, that fits; judges its time against the bound."""

        async def look() -> Beat | None:
            return next((each for each in await self.of(node, since=since) if fits(each)), None)

        beat, _ = await self._base.T.until(look, give_up=self._base.never(bound), since=since, what=what)
        self._base.T.at_most(bound, since=since, seen=beat.at, what=what)
        return beat

    async def busiest(self) -> int:
        """Returns the greatest jobCount that any node has said last."""
        last = {each.node_id: each.job_count or 0 for each in await self.all()}
        return max(last.values(), default=0)

    # --- roles

    async def leaders(self, *, since: Moment | None = None) -> set[str]:
        """Returns the ids that have beaten as leader."""
        return {each.node_id for each in await self.all(since=since) if each.role == LEADER}

    async def one_leads(self, nodes: Sequence[str], *, since: Moment, until: Moment | None = None) -> None:
        """Judges that the heartbeats of that time, where they say a role, say Leader on exactly one of these nodes."""
        roles = {node: {beat.role for beat in await self.of(node, since=since, until=until)} - {""} for node in nodes}
        if not any(roles.values()):
            return
        leading = [node for node, said in roles.items() if LEADER in said]
        both = [node for node, said in roles.items() if len(said) > 1]
        told = "; ".join(f"{node}: {' and '.join(sorted(said))}" for node, said in roles.items() if said)
        demand(len(leading) == 1 and not both, "role Leader on one node, Follower on the others", told, "in heartbeats")
