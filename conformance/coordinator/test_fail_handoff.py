"""A crash during a handoff loses no job (seed 4, Case B; 7, Follower Crashes)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.base import of_job
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import Ghost, playing
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import ACK, HANDOFF, NODE_CRASH, SHUTDOWN

_JOBS, _FEW = 10, 5
_ROUNDS, _CONSUMERS = 3, 3
_PAIR = "first_leader + 3*(load_shown + retry_taken + prompt_exit + start_up)"


@dataclass(frozen=True)
class Round:
    """A drain in which a ghost swallowed handoffs: the first entry of each job, by its id."""

    ghost: Ghost
    leaving: Leaving
    firsts: Mapping[str, Entry]
    taker: str

    @property
    def last(self) -> Moment:
        return max((entry.at for entry in self.firsts.values()), key=lambda at: at.hi)


async def _firsts(cluster: Cluster, leaving: Leaving, count: int) -> dict[str, Entry]:
    """Waits until so many jobs have been offered; returns the first entry of each."""

    async def look() -> dict[str, Entry] | None:
        found = {entry.message.job_id: entry for entry in reversed(await leaving.offers(reason=SHUTDOWN))}
        return found if len(found) >= count else None

    with cluster.context.arranging("CO-DRAIN-04"):
        give_up, what = cluster.never("first_offer"), f"handoffs of {count} jobs"
        found, _ = await cluster.T.until(look, give_up=give_up, since=leaving.begun, what=what)
    return found


@asynccontextmanager
async def _swallowed(cluster: Cluster) -> AsyncIterator[Round]:
    """Lets one node hand its jobs off beside another and a ghost that swallows some; repeats it until it got any."""
    leaver, taker = cluster.nodes
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)
    async with playing(cluster.ghost()) as ghost:
        for _ in range(_ROUNDS):
            crowd = await cluster.jobs.at_least(leaver, _JOBS)
            await ghost.compete(_CONSUMERS)
            leaving = cluster.leave(leaver)
            firsts = await _firsts(cluster, leaving, crowd.count)
            first = min((entry.at for entry in firsts.values()), key=lambda at: at.lo)
            await cluster.T.sleep_until(first, cluster.T.in_first_wait, "the ghost to swallow handoffs")
            await ghost.leave()
            if ghost.swallowed:
                yield Round(ghost, leaving, firsts, await cluster.id_of(taker))
                return
            await leaving.ends()
            await cluster.restart(leaver)
    raise Inconclusive(f"in {_ROUNDS} drains the ghost was given no handoff")


async def _offered_again(cluster: Cluster, round_: Round) -> None:
    """Judges that each handoff that was swallowed comes again, one ACK wait after its first entry."""
    T = cluster.T
    for job_id in {each.job_id for each in round_.ghost.swallowed}:
        first, what = round_.firsts[job_id].at, f"a second handoff of {job_id}, whose first one was read and dropped"
        give_up = 2 * (T.handoff_ack_timeout + T.tolerance)
        again = await cluster.entry(HANDOFF, of_job(job_id, SHUTDOWN), count=2, give_up=give_up, since=first, what=what)
        T.at_least("handoff_ack_timeout", since=first, seen=again.at, tolerance="tolerance", what=what)
        T.at_most("handoff_ack_timeout", since=first, seen=again.at, tolerance="tolerance", what=what)


@verifies("CO-FAIL-08", isolation="disruptive", nodes=2, waits=_PAIR)
async def test_a_handoff_that_its_taker_dropped_comes_again(cluster: Cluster) -> None:
    leaver = cluster.nodes[0]
    waiting = await cluster.id_of(leaver)
    async with _swallowed(cluster) as round_:
        await _offered_again(cluster, round_)

        async def all_taken() -> bool:
            acks = await cluster.found(ACK, since=round_.leaving.begun, nodeId=waiting)
            by_taker = {each.message.job_id for each in acks if each.message.new_owner == round_.taker}
            return round_.firsts.keys() <= by_taker

        what = f"an ACK of {round_.taker} for each of {len(round_.firsts)} jobs"
        await cluster.comes(all_taken, "retry_taken", since=round_.last, what=what)


@verifies("CO-FAIL-08", part=2, isolation="disruptive", nodes=2, waits=_PAIR)
async def test_a_job_whose_taker_dropped_it_has_an_owner(cluster: Cluster) -> None:
    async with _swallowed(cluster) as round_:
        for job_id in round_.firsts:
            what = f"{round_.taker} as the owner of {job_id}"
            await cluster.store.becomes(
                Job(job_id), lambda seen: seen.owner == round_.taker, "retry_taken", since=round_.last, what=what
            )


async def _dies_on_its_way(cluster: Cluster, T: SpecTime) -> list[Job]:
    """Kills the only node while it waits for ACKs of its jobs, whose handoffs are gone; returns the jobs."""
    jobs = await cluster.jobs.owned(_FEW)
    async with playing(cluster.ghost()) as ghost:
        await ghost.compete(swallows=lambda entry: entry.message.reason == SHUTDOWN)
        leaving = cluster.leave(cluster.alone)
        first = min(await leaving.offered(*jobs), key=lambda entry: entry.at.lo)
        await T.sleep_until(first.at, T.in_first_wait, "the sender to wait for ACKs")
        await cluster.kill(leaving.node)
        await ghost.leave()
    if left := {job.id for job in jobs} - {each.job_id for each in ghost.swallowed}:
        raise Inconclusive(f"the ghost was not given {len(left)} of {_FEW} handoffs")
    return jobs


@verifies(
    "CO-FAIL-08",
    part=3,
    isolation="disruptive",
    nodes=1,
    waits="first_leader + load_shown + handoff_ack_timeout + started_leader_handoff + batch_latency",
)
async def test_jobs_of_a_sender_that_died_are_recovered(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    jobs = await _dies_on_its_way(cluster, T)
    name, started = await cluster.start_new()
    last = started
    for job in jobs:
        crash, what = of_job(job.id, NODE_CRASH), f"a NodeCrash handoff of {job.id}, whose sender died"
        entry = await cluster.entry_in_time(HANDOFF, crash, bound="started_leader_handoff", since=started, what=what)
        last = max(last, entry.at, key=lambda at: at.hi)
    what = f"{name} to read the jobs of a sender that died"
    await cluster.jobs.have_reader(jobs, "batch_latency", since=last, among=[await cluster.id_of(name)], what=what)
