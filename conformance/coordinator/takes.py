"""Nodes that leave beside others, and who takes their jobs over, as the ACKs on their topics tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.check.finding import demand
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.jobs import Crowd
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job


@dataclass(frozen=True)
class Drained:
    """A node that has left: its drain, what it had, its first handoff entry and the new owner of each of its jobs."""

    leaving: Leaving
    crowd: Crowd
    exited: Moment
    entries: Mapping[str, Entry]
    owners: Mapping[str, str]

    @property
    def jobs(self) -> list[Job]:
        """Its jobs, in the order in which they were injected."""
        return [job for job in self.crowd.jobs if job.id in self.entries]


async def drained(cluster: Cluster, count: int) -> Drained:
    """Lets a follower leave once it owns at least so many jobs; waits for its exit.

    Judges that it offered as many jobs as it owned and that each of them has ACKs of one other node only.
    """
    (node, *_) = await cluster.followers()
    crowd = await cluster.jobs.at_least(node, count)
    leaving = cluster.leave(node)
    exited = await leaving.ends()
    entries = {each.message.job_id: each for each in reversed(await leaving.offers())}
    with cluster.context.arranging("CO-DRAIN-04"):
        demand(len(entries) == crowd.count, f"handoffs of {crowd.count} jobs", f"of {len(entries)}", f"{node} left")
    owners = one_owner_each(entries, await leaving.acks())
    living = {await cluster.id_of(other) for other in cluster.others(node)}
    strangers = sorted({*owners.values()} - living)
    demand(not strangers, f"newOwner one of {', '.join(sorted(living))}", ", ".join(strangers), "in ACKs")
    return Drained(leaving, crowd, exited, entries, owners)


def one_owner_each(job_ids: Iterable[str], acks: Iterable[Entry]) -> dict[str, str]:
    """Judges that each of these jobs has ACKs, all of one node; returns that node's id by the id of the job."""
    named = acked_by(acks)
    missing = [job_id for job_id in job_ids if not named.get(job_id)]
    demand(not missing, "an ACK for each job", f"none for {', '.join(missing[:5])}", "handoffs beside other nodes")
    several = [f"{job_id}: {' and '.join(sorted(named[job_id]))}" for job_id in job_ids if len(named[job_id]) > 1]
    demand(not several, "ACKs of one node for each job", "; ".join(several[:5]), "one new owner each", unsafe=True)
    return {job_id: next(iter(named[job_id])) for job_id in job_ids}


def acked_by(acks: Iterable[Entry]) -> dict[str, set[str]]:
    """Returns the new owners that these ACKs name, by the id of the job."""
    found = dict[str, set[str]]()
    for each in acks:
        found.setdefault(each.message.job_id, set()).add(each.message.new_owner)
    return found
