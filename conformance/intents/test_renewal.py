"""Leases of a running session while it is watched (seed 3.2 step 6): extended with a margin, and never stolen back."""

from collections.abc import Sequence
from itertools import pairwise

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import WITH_STANDBY, lease_keys, runs_on_first
from holdfast.conformance.intents.wire import ended, shown

_BEGIN = Moment(0.0, 0.0)


@verifies("IN-RUN-04", part=2, waits="start_ready + renewal_watch")
async def test_both_leases_are_there_all_the_time_and_extended(intents: Intents) -> None:
    for key, left in (await _life_times(intents)).items():
        rises = sum(later > sooner for sooner, later in pairwise(left))
        demand(rises >= 2, "a life time that rises twice or more", f"{rises} times", key)


@verifies("IN-RUN-05", waits="start_ready + renewal_watch")
async def test_both_leases_are_extended_with_a_margin(intents: Intents, T: SpecTime) -> None:
    for key, left in (await _life_times(intents)).items():
        _keeps_margin(T, left, key)


async def _life_times(intents: Intents) -> dict[str, list[float]]:
    """Watches both leases of a running session for several renewals; returns the life times that each showed."""
    session = await intents.running()
    left = {key: list[float]() for key in await lease_keys(intents, session)}

    async def look() -> None:
        for key, seen in left.items():
            seen.append(await _time_left(intents, session, key))

    await intents.throughout(look, intents.T.renewal_watch, "both leases", every=intents.T.sample_every)
    return left


async def _time_left(intents: Intents, session: Session, key: str) -> float:
    """Returns the life time of a lease of this session, in seconds; judges that it is there."""
    lease = await intents.store.lease(key)
    expect(lease.owner, session.id, why=f"owner of {key}")
    demand(lease.left is not None, "a lease with a life time", lease.describe(), key)
    return lease.left or 0.0


def _keeps_margin(T: SpecTime, left: Sequence[float], key: str) -> None:
    lowest = min(left)
    T.at_least("pttl_floor", since=_BEGIN, seen=Moment(lowest, lowest), what=f"the lowest life time of {key}")


@verifies("IN-RUN-05", part=2, waits="long_start + start_ready")
async def test_leases_are_extended_while_the_pipeline_is_starting(intents: Intents, T: SpecTime) -> None:
    session = await intents.starting(delay="long_start")

    async def held() -> bool:
        return bool(await intents.store.tuners_of(session.id))

    with intents.context.arranging("IN-RUN-02"):
        await T.until(held, give_up=T.give_up, what="the tuner lease", every=T.sample_fast)
    keys = await lease_keys(intents, session)
    left = {key: list[float]() for key in keys}

    async def ready() -> bool:
        seen = await intents.poll(session)
        demand(not seen.terminal, "a session that comes to run", seen.describe(), "a slow pipeline")
        for key in keys:
            left[key].append(await _time_left(intents, session, key))
        return seen.state in intents.running_states

    late = T.long_start + T.give_up
    await T.until(ready, give_up=late, what="READY after a slow start", every=T.sample_every)
    for key, seen in left.items():
        _keeps_margin(T, seen, key)


@verifies(
    "IN-RUN-05",
    part=3,
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="3*probe_past_ttl + 3*start_ready",
)
async def test_a_worker_that_was_suspended_does_not_take_its_channel_back(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    old = await runs_on_first(intents, profile=first)
    await intents.pause(intents.worker)
    await T.sleep(T.probe_past_ttl, "the leases of the suspended worker to run out")
    with intents.context.arranging("IN-KILL-04"):
        new = (await intents.retry(old.target, second)).session
    await intents.resume(intents.worker)
    key = intents.store.service(old.target)

    async def look() -> None:
        expect((await intents.store.lease(key)).owner, new.id, why=f"owner of {key} after the worker went on")
        expect(await intents.poll(new), shown(*intents.running_states), why="the new session")

    await intents.throughout(look, T.probe_past_ttl, "the new session", every=T.sample_every)
    expect(await intents.poll(old), ended(), why="the session of the suspended worker at the end")
