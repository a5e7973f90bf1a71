"""The leader lock (seed 1, Leader Election): its name, its lease, and that it is never taken from its holder."""

from itertools import pairwise

from holdfast.check.finding import Absent, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds, takes_in_one_step
from holdfast.conformance.coordinator.lock import SAMPLE_EVERY, Sample
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import ENQUEUE
from holdfast.conformance.coordinator.wire import DISPATCH

# What a life time may be above the lease: PTTL is in whole milliseconds, and so are settings.
_ROUNDED = 0.002


async def _kept_until_it_expires(cluster: Cluster, foreign: str) -> Sample:
    """Judges that the foreign value stays in the lock until it runs out; returns the last sample that had it."""
    T = cluster.T
    last = await cluster.lock.sample()
    expect(last.value, foreign, why="the lock right after another holder took it")
    expiry = last.expiry

    async def changed() -> Sample | None:
        nonlocal last
        seen = await cluster.lock.sample()
        if seen.value == foreign:
            last = seen
        return None if seen.value == foreign else seen

    give_up = (last.left or 0.0) + T.tolerance
    seen, when = await T.until(changed, give_up=give_up, what="the foreign value to run out", every=SAMPLE_EVERY / 2)
    kept = when.hi >= expiry.lo - SAMPLE_EVERY
    told = f"{seen.describe()}, {expiry.lo - when.hi:.2f} s before that"
    demand(kept, f"{foreign} in the lock until its expiry", told, "it is another holder's", unsafe=True)
    return last


async def _claimed(cluster: Cluster, foreign: Sample) -> Moment:
    """Judges that a node claims the lock once the foreign value has run out; returns when its value was there."""
    _, taken = await cluster.lock.taken("free_lock_claim", since=foreign.expiry, other_than=foreign.value)
    return taken


_FOREIGN = "first_leader + foreign_lease + free_lock_claim"


@verifies("CO-LOCK-01", isolation="quiet", waits=_FOREIGN)
async def test_leadership_is_the_value_of_a_text_key(cluster: Cluster, T: SpecTime) -> None:
    await cluster.lock.taken("first_leader", since=T.now(), what=f"a leader's value in {cluster.lock.key}")
    kind = await cluster.lock.type()
    if kind == "none":
        raise Absent([f"a value in {cluster.lock.key}"], "no such key", "a cluster with a leader")
    expect(kind, "string", why=f"the type of {cluster.lock.key}")
    last = await _kept_until_it_expires(cluster, await cluster.lock.steal(T.foreign_lease))
    await _claimed(cluster, last)


async def _waits_for_the_lock(cluster: Cluster, foreign: str, job: Job) -> None:
    """Judges that the job is dispatched when a node has claimed the lock that another held, and not before."""
    T = cluster.T
    last = await _kept_until_it_expires(cluster, foreign)
    early = [each.describe() for each in await cluster.bus.entries(DISPATCH, queue=job.queue)]
    taken = await _claimed(cluster, last)
    demand(not early, "no dispatch while another holds the lock", "; ".join(early), "no node leads then")
    give_up = 2 * (T.dispatch_scan + T.tolerance)
    entry = await cluster.entry(DISPATCH, queue=job.queue, give_up=give_up, since=taken, what=f"a dispatch of {job.id}")
    T.at_most("dispatch_scan", since=taken, seen=entry.at, tolerance="tolerance", what="the dispatch")


@verifies("CO-LOCK-01", isolation="quiet", waits=f"{_FOREIGN} + dispatch_scan", needs_hooks=[ENQUEUE])
async def test_no_node_acts_as_leader_while_another_holds_the_lock(cluster: Cluster) -> None:
    await cluster.leader()
    foreign = await cluster.lock.steal(cluster.T.foreign_lease)
    await cluster.lock.nobody_leads()
    (job,) = await cluster.jobs.enqueue()
    await _waits_for_the_lock(cluster, foreign, job)


@verifies(
    "CO-LOCK-01",
    part=2,
    isolation="disruptive",
    start="by hand",
    waits=f"start_up + {_FOREIGN} + dispatch_scan",
    needs_hooks=[ENQUEUE],
)
async def test_nodes_that_start_find_the_lock_held_and_leave_it(cluster: Cluster, T: SpecTime) -> None:
    foreign = await cluster.lock.steal(T.foreign_lease + T.start_up)
    await cluster.start()
    await cluster.beats.first_of_all(cluster.nodes)
    await cluster.lock.nobody_leads()
    (job,) = await cluster.jobs.enqueue()
    await _waits_for_the_lock(cluster, foreign, job)


@verifies("CO-LOCK-02", isolation="quiet", waits="first_leader + lease_watch")
async def test_the_lease_is_renewed_in_time_and_to_its_full_length(cluster: Cluster, T: SpecTime) -> None:
    first = await cluster.lock.led()

    def look(seen: Sample) -> None:
        demand(seen.value == first.value, f"{first.value} all the time", seen.describe(), "the leader is well")
        demand(seen.left is not None, "a value with an expiry", seen.describe(), "value and expiry are set in one step")
        at_most = f"at most {T.lease:.3f} s left"
        demand((seen.left or 0.0) <= T.lease + _ROUNDED, at_most, seen.describe(), "the lease")

    samples = await cluster.lock.watch(T.lease_watch, "the renewals of the lock", look, every=SAMPLE_EVERY / 4)
    renewals = _renewals(samples, T.lease)
    _never_too_short(cluster, samples)
    demand(len(renewals) >= 2, "three renewals", f"{len(renewals)} in {T.lease_watch:.1f} s", "of a healthy leader")
    for earlier, later in pairwise(renewals):
        T.at_least("renew_interval", since=earlier, seen=later, tolerance="tolerance", what="the next renewal")
        T.at_most("renew_interval", since=earlier, seen=later, tolerance="tolerance", what="the next renewal")
    for before, after in pairwise(samples):
        if _renewed(before, after):
            least = T.lease - T.tolerance - (after.moment.hi - before.moment.lo)
            demand((after.left or 0.0) >= least, f"{least:.2f} s or more left", after.describe(), "after a renewal")


def _renewed(before: Sample, after: Sample) -> bool:
    return after.expiry.lo > before.expiry.hi + SAMPLE_EVERY


def _renewals(samples: list[Sample], lease: float) -> list[Moment]:
    """Returns when the lock was renewed, each between two samples, and no longer ago than a lease before its expiry."""
    pairs = [(before, after) for before, after in pairwise(samples) if _renewed(before, after)]
    return [
        Moment(max(before.moment.lo, after.expiry.lo - lease - _ROUNDED), after.moment.hi) for before, after in pairs
    ]


def _never_too_short(cluster: Cluster, samples: list[Sample]) -> None:
    T = cluster.T
    lowest = min(samples, key=lambda each: each.left or 0.0)
    since = Moment(lowest.moment.lo - T.renew_interval, lowest.moment.hi)
    with T.unless(lambda: T.held_back(since, lowest.moment.hi), T.tolerance):
        least = T.min_lease_left - T.tolerance
        demand((lowest.left or 0.0) >= least, f"{least:.2f} s or more left", lowest.describe(), "before a renewal")


@verifies("CO-LOCK-02", part=2, isolation="quiet", waits="first_leader")
async def test_value_and_expiry_are_set_in_one_step(cluster: Cluster, deeds: Deeds) -> None:
    await cluster.lock.led()
    await deeds.tap.nothing_bypassed()
    claims = deeds.claims_that_succeeded()
    deeds.tap.show(claims[:1])
    demand(claims, "a command that took the lock", "none at the tap", "somebody leads")
    one_step = takes_in_one_step(claims[0], deeds.transaction_of(claims[0]))
    legal = "one SET with NX and EX or PX, or one script"
    demand(one_step, legal, claims[0].describe(), "the command that took the lock")


@verifies("CO-LOCK-04", isolation="quiet", waits="first_leader + foreign_watch")
async def test_a_renewal_leaves_the_value_of_another_holder_alone(cluster: Cluster, T: SpecTime) -> None:
    await cluster.leader()
    foreign = await cluster.lock.steal(T.foreign_lease)
    samples = list[Sample]()

    def look(seen: Sample) -> None:
        demand(seen.value == foreign, f"{foreign} in the lock", seen.describe(), "it is another holder's", unsafe=True)
        if samples:
            fell = seen.expiry.lo <= samples[-1].expiry.hi + _ROUNDED
            told = f"{samples[-1].describe()}, then {seen.describe()}"
            demand(fell, "a life time that only falls", told, "it is another holder's lock")
        samples.append(seen)

    await cluster.lock.watch(T.foreign_watch, "renewals of the leader that was deposed", look)


@verifies("CO-LOCK-04", isolation="quiet", waits="first_leader + lease_watch")
async def test_the_token_stays_the_same_over_renewals(cluster: Cluster, T: SpecTime) -> None:
    first = await cluster.lock.led()

    def look(seen: Sample) -> None:
        expect(seen.value, first.value, why="the leader is well, and renews its lock")

    samples = await cluster.lock.watch(T.lease_watch, "the renewals of the lock", look)
    demand(_renewals(samples, T.lease), "renewals", "none", f"of a leader that is watched for {T.lease_watch:.1f} s")
