"""The service lease (seed 3.2 steps 1 and 3): taken by the worker for the session, before the tuner, with an expiry."""

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.keyspace import KeyEvent, Keyspace
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.keys import Lease
from holdfast.conformance.intents.rivals import ends_busy
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import ended_busy, shown


@verifies("IN-DEDUP-01", waits="give_up")
async def test_a_running_session_owns_the_lease_of_its_channel(intents: Intents) -> None:
    session = await intents.running()
    key = intents.store.service(session.target)
    expect((await intents.store.lease(key)).owner, session.id, why=f"owner of {key} while the session runs")


# --- before the tuner


@verifies("IN-DEDUP-02", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + quiet_watch")
async def test_a_held_channel_is_the_verdict_even_if_no_tuner_is_free(intents: Intents, T: SpecTime) -> None:
    await intents.slots(1)
    rejected = await _conflict(intents)
    await T.sleep(T.quiet_watch, "another verdict to come")
    expect(await intents.poll(rejected), ended_busy(), why="the rejected session quiet_watch later")


@verifies("IN-DEDUP-02", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + quiet_watch")
async def test_a_rejected_session_never_touches_the_free_tuner(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    await intents.slots(2)
    holder = await intents.running(profile=intents.profiles[0])
    held, began = await intents.store.leases("tuner"), T.now()
    await ends_busy(intents, holder, intents.profiles[1])
    await T.sleep(T.quiet_watch, "the rejected session to take a tuner")
    touched = await keys.events(f"{intents.store.roots('tuner')[0]}*", since=began)
    others = [event for event in touched if event.key not in held]
    demand(not others, "no change of a tuner lease that was free", _changes(others), "a start of a held channel")


@verifies("IN-DEDUP-02", part=3, waits="give_up + quiet_watch")
async def test_a_rejected_session_starts_no_pipeline(intents: Intents, T: SpecTime) -> None:
    rejected = await _conflict(intents)
    expect(await intents.runs(rejected.target), 1, why="pipelines of the channel after the rejection")
    await T.sleep(T.quiet_watch, "another pipeline to start")
    expect(await intents.runs(rejected.target), 1, why="pipelines of the channel quiet_watch later")


async def _conflict(intents: Intents) -> Session:
    """Lets a session hold a channel and starts it in another profile; returns the rejected session."""
    holder = await intents.running(profile=intents.profiles[0])
    rejected, _ = await ends_busy(intents, holder, intents.profiles[1])
    return rejected


def _changes(events: list[KeyEvent]) -> str:
    return plain([f"{event.kind} {event.key}" for event in events])


# --- the owner's own lease


@verifies("IN-DEDUP-03", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + hold_watch")
async def test_a_start_event_that_comes_again_changes_nothing(intents: Intents, T: SpecTime) -> None:
    await _comes_again(intents, T)


@verifies("IN-DEDUP-03", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + hold_watch")
async def test_a_start_event_that_comes_again_starts_no_second_pipeline(intents: Intents, T: SpecTime) -> None:
    session = await _comes_again(intents, T)
    expect(await intents.runs(session.target), 1, why="pipelines of the channel at the end of hold_watch")


async def _comes_again(intents: Intents, T: SpecTime) -> Session:
    """Delivers the start of a running session again and judges that it goes on with what it had; returns it."""
    await intents.slots(2)
    session = await intents.running()
    service = intents.store.service(session.target)
    await intents.redeliver(session, T.count("redeliveries"))

    async def look() -> None:
        expect(await intents.poll(session), shown(*intents.running_states), why="the session after redeliveries")
        expect((await intents.store.lease(service)).owner, session.id, why=f"owner of {service}")
        tuners = await intents.store.tuners_of(session.id)
        demand(len(tuners) == 1, "one tuner lease of the session", plain(tuners), "after redeliveries of its start")

    await intents.throughout(look, T.hold_watch, "the session after redeliveries", every=T.sample_every)
    return session


# --- every lease expires


@verifies("IN-DEDUP-04", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + renewal_due")
async def test_both_leases_are_taken_for_one_lease_time(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    ref, tuners = intents.channel(), f"{intents.store.roots('tuner')[0]}*"
    service, began = intents.store.service(ref), T.now()
    keys.watch(service, tuners)
    session = await intents.running(ref)
    with intents.context.arranging("IN-RUN-02"):
        held = await intents.store.tuners_of(session.id)
        demand(len(held) == 1, "one tuner lease of the session", plain(held), "a session that runs")
    leases = (service, held[0])
    for key in leases:
        _is_fresh(T, key, await keys.written(key, since=began))

    async def look() -> None:
        expect(await intents.poll(session), shown(*intents.running_states), why="the session")
        for key in leases:
            _expires(T, await intents.store.lease(key), key)

    await intents.throughout(look, T.renewal_due, "the life times of both leases", every=T.sample_every)


def _is_fresh(T: SpecTime, key: str, taken: KeyEvent | None) -> None:
    """Judges the life time of a lease that was read as soon as it was taken; what passed until then is added."""
    if taken is None or taken.reading is None:
        raise Inconclusive(f"{key} could not be read when it was taken")
    lease = Lease(str(taken.reading.value or ""), taken.reading.lives, taken.reading.moment)
    _expires(T, lease, key)
    longest = (lease.left or 0.0) + lease.moment.hi - taken.moment.lo
    expected = f"a life time of lease_ttl, {T.lease_ttl:.2f} s, or up to {T.fresh_tolerance:.2f} s less"
    demand(longest >= T.lease_ttl - T.fresh_tolerance, expected, lease.describe(), f"{key} when it was taken")


def _expires(T: SpecTime, lease: Lease, key: str) -> None:
    expected = f"a lease with {T.lease_ttl:.2f} s left at most"
    demand(lease.left is not None and 0 < lease.left <= T.lease_ttl, expected, lease.describe(), key)
