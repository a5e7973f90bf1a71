"""Nodes that die while they own jobs, and what the leader then publishes.

    await cluster.jobs.at_least(node, 5)             # beside other nodes, which own jobs too
    crash = await kill(cluster, node)
    first = await crash.offers()                     # the first NodeCrash entry of each of its jobs
    crash.in_time(first.values())

How many jobs a node owned its last heartbeat says; which ones they were, only the job's readers or the store. So a
check that needs nothing but the wire counts distinct jobs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.beats import Beat
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import HANDOFF, NODE_CRASH

# Tolerances that a wait goes on after the last legal moment, so that what comes late is seen to be late.
_LINGER = 3


@dataclass(frozen=True)
class Crash:
    """The death of a node: when it was killed, its last heartbeat, and how many jobs that counted."""

    cluster: Cluster
    node: str
    killed: Moment
    last: Beat
    count: int

    @property
    def dead_at(self) -> Moment:
        """When it has been silent for dead_node_timeout."""
        silence = self.cluster.T.dead_node_timeout
        return Moment(self.last.at.lo + silence, self.last.at.hi + silence)

    async def offers(self, *, latest: float = 0.0, count: int | None = None) -> dict[str, Entry]:
        """Waits for NodeCrash entries of as many distinct jobs as it owned; returns the first entry of each.

        Raises Finding when they can't come in time any more: after `latest` seconds from its last heartbeat, or after
        crash_handoff where nothing else is given.
        """
        T, wanted = self.cluster.T, self.count if count is None else count

        async def look() -> dict[str, Entry] | None:
            found = firsts(await crash_entries(self.cluster, since=self.last.at))
            return found if len(found) >= wanted else None

        give_up = (latest or T.crash_handoff) + _LINGER * T.tolerance
        what = f"NodeCrash entries of {wanted} jobs that {self.node} owned"
        found, _ = await T.until(look, give_up=give_up, since=self.last.at, what=what)
        return found

    def in_time(self, entries: Iterable[Entry]) -> None:
        """Judges that these entries come dead_node_timeout to crash_handoff after its last heartbeat."""
        for each in entries:
            what = f"the NodeCrash entry of {each.message.job_id}"
            T, since = self.cluster.T, self.last.at
            T.at_least("dead_node_timeout", since=since, seen=each.at, tolerance="tolerance", what=what)
            T.at_most("crash_handoff", since=since, seen=each.at, tolerance="tolerance", what=what)

    async def counted(self, found: Mapping[str, Entry]) -> None:
        """Judges that as many jobs were published as the last heartbeat counted; the other nodes have to be well."""
        await heard(self.cluster, [node for node in self.cluster.live if node != self.node], since=self.last.at)
        expect(len(found), self.count, why=f"jobs published as those of {self.node}, by its last heartbeat")

    async def over(self) -> None:
        """Waits until the last moment at which its jobs may be published for the first time."""
        T = self.cluster.T
        await T.sleep_until(self.last.at, T.crash_handoff + T.tolerance, f"handoffs of the jobs of {self.node}")


async def kill(cluster: Cluster, node: str) -> Crash:
    """Kills a node once it has been heard. What it owned is what its last heartbeat says."""
    await cluster.beats.last(node)
    killed = await cluster.kill(node)
    last = await cluster.beats.last(node)
    return Crash(cluster, node, killed, last, last.job_count or 0)


async def crash_entries(cluster: Cluster, *, since: Moment) -> list[Entry]:
    """Returns the handoffs written since then whose reason is NodeCrash, however a target spells it."""
    return await cluster.found(HANDOFF, lambda entry: entry.message.reason == NODE_CRASH, since=since)


async def heard(cluster: Cluster, nodes: Iterable[str], *, since: Moment) -> None:
    """Raises Inconclusive if one of these nodes was silent so long since then that others may take it for dead.

    A busy machine can do that to a node, and its jobs are published then, too. Heartbeats themselves are judged by
    CO-BEAT-01.
    """
    T = cluster.T
    for node in nodes:
        moments = [beat.at for beat in await cluster.beats.of(node)] + [T.now()]
        gaps = [after.hi - before.lo for before, after in pairwise(moments) if after.hi >= since.lo]
        if (longest := max(gaps, default=0.0)) > T.dead_node_timeout - T.tolerance:
            raise Inconclusive(f"{node} was silent for {longest:.2f} s, so that others may take it for dead")


async def no_crash_handoff(cluster: Cluster, *, since: Moment, why: str) -> None:
    """Judges that no job has been published as a dead node's since then."""
    await cluster.no_entry(HANDOFF, lambda entry: entry.message.reason == NODE_CRASH, since=since, why=why)


def firsts(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Returns the first entry of each job, by its id."""
    found = dict[str, Entry]()
    for each in entries:
        found.setdefault(each.message.job_id, each)
    return found


def same_jobs(seen: Iterable[str], jobs: Iterable[Job], what: str, why: str) -> None:
    """Judges that these are the ids of exactly these jobs; a finding names those that are missing or too many."""
    found, wanted = set(seen), {job.id for job in jobs}
    missing, more = wanted - found, found - wanted
    words = [f"missing: {', '.join(sorted(missing)[:5])}"] if missing else []
    words += [f"too many: {', '.join(sorted(more)[:5])}"] if more else []
    demand(not words, f"{what} of exactly {len(wanted)} jobs", f"{len(found)}; {'; '.join(words)}", why)


async def read_anew(cluster: Cluster, jobs: Sequence[Job], bound: str) -> dict[str, str]:
    """Publishes a log for each job and waits until all of them are processed; returns reader(J) by the job's id.

    So the readers are those of now, also of a job that had another one before.
    """
    published = cluster.T.now()
    for job in jobs:
        published = await cluster.worker.logs(job)
    await cluster.groups.done(jobs, bound, since=published)
    return await cluster.groups.readers(jobs)


def unchanged(before: Mapping[str, str], after: Mapping[str, str], why: str) -> None:
    """Judges that each of these jobs has the same node as before, as reader or as owner."""
    moved = [
        f"{job_id}: {was}, then {after.get(job_id) or 'none'}"
        for job_id, was in before.items()
        if after.get(job_id) != was
    ]
    demand(not moved, f"the same node for each of {len(before)} jobs", "; ".join(moved[:5]), why)
