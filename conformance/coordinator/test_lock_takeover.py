"""How leadership changes hands (seed 1, Leader Election; 7, Leader Crashes; 4, a leader that is stopped)."""

from holdfast.check.finding import Inconclusive, demand
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.lock import SAMPLE_EVERY, Sample


async def _known_leader(cluster: Cluster) -> str:
    """Waits until the leader has beaten as such, so that the others would miss its heartbeats; returns its name."""
    leader = await cluster.leader()
    await cluster.beats.next(leader, since=cluster.T.now())
    return leader


async def _lasts(cluster: Cluster, old: Sample) -> None:
    """Judges that the dead leader's value stays in the lock until its lease has run out."""

    async def changed() -> Sample | None:
        seen = await cluster.lock.sample()
        return seen if seen.value != old.value or seen.expiry.lo > old.expiry.hi + SAMPLE_EVERY else None

    give_up = (old.left or 0.0) + cluster.T.tolerance
    seen, when = await cluster.T.until(changed, give_up=give_up, what="the lease to run out", every=SAMPLE_EVERY / 2)
    early = old.expiry.lo - when.hi
    told = f"{seen.describe()}, {early:.2f} s earlier"
    demand(early <= cluster.T.tolerance, f"{old.value} until its lease ends", told, "an unexpired lock is not removed")


@verifies(
    "CO-LOCK-03", isolation="disruptive", nodes=3, waits="first_leader + heartbeat_interval + leader_takeover + lease"
)
async def test_one_node_takes_over_when_the_lease_has_run_out(cluster: Cluster, T: SpecTime) -> None:
    leader = await _known_leader(cluster)
    killed = await cluster.kill(leader)
    old = await cluster.lock.sample()
    await _lasts(cluster, old)
    new, taken = await cluster.lock.taken("leader_takeover", since=killed, other_than=old.value)

    def look(seen: Sample) -> None:
        demand(seen.value == new.value, f"{new.value} for another lease", seen.describe(), "its holder is well")

    await cluster.lock.watch(T.lease, "the new leader to keep the lock", look)
    settled = Moment(taken.hi + T.tolerance, taken.hi + T.tolerance)
    await cluster.beats.one_leads(cluster.others(leader), since=settled)


@verifies("CO-LOCK-03", part=2, isolation="disruptive", nodes=3, waits="first_leader + heartbeat_interval + lease")
async def test_the_lock_of_a_frozen_leader_is_left_until_its_lease_has_run_out(cluster: Cluster) -> None:
    leader = await _known_leader(cluster)
    await cluster.pause(leader)
    await _lasts(cluster, await cluster.lock.sample())


@verifies("CO-LOCK-04", part=2, isolation="disruptive", nodes=2, waits="first_leader + leader_takeover")
async def test_the_next_leader_has_another_token(cluster: Cluster) -> None:
    leader = await cluster.leader()
    killed = await cluster.kill(leader)
    old = await cluster.lock.sample()

    async def acquired() -> Sample | None:
        seen = await cluster.lock.sample()
        anew = seen.value != old.value or seen.expiry.lo > old.expiry.hi + SAMPLE_EVERY
        return seen if seen.value and anew else None

    with cluster.context.arranging("CO-LOCK-03"):
        new, _ = await cluster.T.until(
            acquired, give_up=cluster.never("leader_takeover"), since=killed, what="the next leader"
        )
    demand(new.value != old.value, f"another value than {old.value}", new.value, "another node has taken the lock")


async def _ended(cluster: Cluster, node: str, before: Sample) -> Moment:
    """Sends SIGTERM to a leader that owns nothing; returns when it ended.

    Raises Inconclusive where its lease would have run out by then: then the lock is free for that reason alone.
    """
    leaving = cluster.leave(node)
    with cluster.context.arranging("CO-DRAIN-06"):
        ended = await leaving.exits("prompt_exit", since=leaving.begun)
    if ended.hi >= before.expiry.lo:
        raise Inconclusive(f"{node} ended {ended.hi - leaving.begun.lo:.2f} s after SIGTERM, when its lease was over")
    return ended


@verifies("CO-LOCK-07", isolation="disruptive", nodes=1, waits="first_leader + renew_interval + prompt_exit")
async def test_a_leader_that_stops_leaves_the_lock_free(cluster: Cluster) -> None:
    leader = await cluster.leader()
    before = await cluster.lock.just_renewed()
    await _ended(cluster, leader, before)
    after = await cluster.lock.value()
    demand(after != before.value, "the lock free, or another node's", after, f"{leader} has exited")


@verifies("CO-LOCK-07", isolation="disruptive", nodes=1, waits="first_leader + renew_interval + prompt_exit")
async def test_a_leader_that_stops_leaves_the_lock_of_another_holder_alone(cluster: Cluster, T: SpecTime) -> None:
    leader = await cluster.leader()
    await cluster.lock.just_renewed()
    foreign = await cluster.lock.steal(T.foreign_lease)
    await _ended(cluster, leader, await cluster.lock.sample())
    after = await cluster.lock.value()
    demand(after == foreign, f"{foreign} in the lock", after or "no value", f"{leader} has exited", unsafe=True)


@verifies(
    "CO-LOCK-07",
    part=2,
    isolation="disruptive",
    nodes=2,
    waits="first_leader + renew_interval + prompt_exit + free_lock_claim",
)
async def test_the_successor_of_a_leader_that_stops_need_not_wait_for_the_lease(cluster: Cluster) -> None:
    leader = await cluster.leader()
    before = await cluster.lock.just_renewed()
    ended = await _ended(cluster, leader, before)
    await cluster.lock.taken("free_lock_claim", since=ended, other_than=before.value, what="the other node's value")
