"""Hard kills of the worker (seed 5.3), in phase 1, in the store, and against what only looks like one."""

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.keyspace import GONE, Keyspace
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import PHASE_1, Intents, Session
from holdfast.conformance.intents.kills import (
    Recovered,
    busy_until_expiry,
    queued_meanwhile,
    recovers,
    refused_until_expiry,
    restart_api,
    soon,
)
from holdfast.conformance.intents.running import ONE_OF_EACH, WITH_STANDBY, lease_keys, runs_on_first
from holdfast.conformance.intents.wire import Answer, accepted, ended_busy, ended_without_tuner, refused, shown


@verifies(
    "IN-KILL-03",
    part=2,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="start_ready + free_again",
)
async def test_in_phase_1_the_channel_is_refused_while_the_lease_is_there(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    held = await intents.running(profile=first)
    killed = await intents.kill(intents.lone_workers[0])

    async def look(_held: Session, answer: Answer) -> None:
        lease = await intents.store.lease(intents.store.service(held.target))
        if lease.owner == held.id:  # read after the answer, so it was there all the time
            expect(answer, refused(409), why="a start while the dead session's lease is there")

    await refused_until_expiry(intents, held, second, killed, look)


@verifies(
    "IN-KILL-04",
    part=2,
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="start_ready + standby_ready",
)
async def test_another_worker_rejects_while_the_leases_are_there(intents: Intents) -> None:
    await intents.slots(1)
    held = await runs_on_first(intents)
    service, tuner = await lease_keys(intents, held)
    killed = await intents.kill(intents.lone_workers[0])

    async def look(session: Session, verdict: Answer) -> None:
        same = session.target == held.target
        lease = await intents.store.lease(service if same else tuner)
        if lease.owner == held.id:  # read after the verdict, so it was there all the time
            legal = ended_busy() if same else ended_without_tuner()
            expect(verdict, legal, why="a start that was decided while the dead session's lease is there")

    await busy_until_expiry(intents, held, killed, look)


@verifies("IN-KILL-07", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="2*start_ready + 2*recover_ready")
async def test_the_lease_of_what_was_queued_is_not_flushed(intents: Intents, T: SpecTime) -> None:
    queued, started = await queued_meanwhile(intents)
    key = intents.store.service(queued.target)

    async def held() -> bool:
        return (await intents.store.lease(key)).owner == queued.id

    await T.until(held, give_up=T.give_up, what="the lease of the queued session", every=T.sample_fast)

    async def still() -> None:
        demand(await held(), f"{key} of {queued.id}", "gone, or another's", "from the first time on")

    left = started.hi + T.recover_ready - T.now().hi
    await intents.throughout(still, left, "a flush that comes late", every=T.sample_fast)
    rival = await intents.begin(queued.target, intents.profiles[2])

    async def rejected() -> Answer | None:
        await still()
        seen = await intents.poll(rival)
        return seen if seen.terminal or seen.state in intents.running_states else None

    verdict, _ = await T.until(rejected, give_up=T.give_up, what="a verdict on the rival", every=T.sample_fast)
    expect(verdict, ended_busy(), why="another start of the channel")


@verifies(
    "IN-KILL-08",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="start_ready + recover_ready",
)
async def test_in_phase_1_the_channel_is_there_at_once_after_a_kill(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    old = await intents.running(profile=first)
    killed = await intents.kill(intents.worker)
    started = await intents.restart(intents.worker)

    async def taken() -> Session | None:
        answer = await intents.start(old.target, second)
        expect(answer, accepted(), refused(409), why="a start of the channel after kill and restart")
        return Session(answer.session_id, old.target, second, answer) if answer.status == 202 else None

    what = "the channel accepted again"
    new, _ = await T.until(taken, give_up=T.give_up, since=killed, what=what, every=T.probe_every)
    verdict, ready = await intents.verdict(new)
    expect(verdict, shown(*intents.running_states), why="the session that was accepted after kill and restart")
    soon(intents, Recovered(old, new, killed, started, ready))


@verifies(
    "IN-KILL-08",
    part=2,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    busy=True,
    waits="kill_cycles*(stop_release + recover_ready)",
)
async def test_after_each_kill_the_new_session_holds_the_only_leases(intents: Intents, T: SpecTime) -> None:
    for cycle in range(T.count("kill_cycles")):
        new = (await recovers(intents)).new
        for kind in ("service", "tuner"):
            owners = list((await intents.store.leases(kind)).values())
            one = owners == [new.id]
            demand(one, f"one {kind} lease, of {new.id}", ", ".join(owners) or "none", f"cycle {cycle + 1}")
        await intents.stopped(new)


@verifies(
    "IN-KILL-09", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + api_ready + renewal_due"
)
async def test_a_restart_of_the_api_leaves_the_leases(intents: Intents, T: SpecTime) -> None:
    held = await intents.running()
    leases = await lease_keys(intents, held)
    restarted = await restart_api(intents)

    async def look() -> None:
        for key in leases:
            expect((await intents.store.lease(key)).owner, held.id, why=f"owner of {key} after a restart of the API")

    left = restarted.hi + T.renewal_due - T.now().hi
    await intents.throughout(look, left, "both leases", every=T.sample_every)


@verifies("IN-KILL-09", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="2*start_ready + recover_ready")
async def test_a_restart_of_the_worker_leaves_mapping_and_bus(intents: Intents) -> None:
    await intents.stopped(await intents.running())
    await intents.kill(intents.lone_workers[0])
    queued = await intents.begin()
    bus = {event.id for event in await intents.store.events()}
    keys = {key for key, session_id in (await intents.store.mappings()).items() if session_id == queued.id}
    with intents.context.arranging("IN-QUEUE-03"):
        demand(keys and bus, "a mapping of the queued session, and events", f"{len(keys)} and {len(bus)}")
    await intents.restart(intents.worker)
    expect(await intents.decided(queued), shown(*intents.running_states), why="the queued session")
    gone = ", ".join(bus - {event.id for event in await intents.store.events()})
    demand(not gone, "all events that were on the bus", f"without {gone}", "after the restart of the worker")
    lost = ", ".join(keys - (await intents.store.mappings()).keys())
    demand(not lost, "the mapping of the queued session", f"without {lost}", "after the restart of the worker")


@verifies(
    "IN-KILL-09", part=3, isolation="disruptive", nodes=ONE_OF_EACH, waits="2*start_ready + short_outage + renewal_due"
)
async def test_a_regained_store_connection_frees_no_channel(intents: Intents, faults: Faults, T: SpecTime) -> None:
    held = await intents.running()
    await _outage(intents, faults)
    await intents.undisturbed(held, T.renewal_due, "the running session after a short outage")
    rival = await intents.begin(held.target, intents.profiles[1])
    expect(await intents.decided(rival), ended_busy(), why="another start of the channel after a short outage")


@verifies(
    "IN-KILL-09", part=4, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + short_outage + renewal_due"
)
async def test_a_regained_store_connection_deletes_no_lease(
    intents: Intents, faults: Faults, keys: Keyspace, T: SpecTime
) -> None:
    held = await intents.running()
    leases, since = await lease_keys(intents, held), T.now()
    await _outage(intents, faults)
    await T.sleep(T.renewal_due, "leases to be deleted by a worker that is back")
    for key in leases:
        ends = ", ".join(event.kind for event in await keys.events(key, *GONE, since=since))
        demand(not ends, f"{key} there all the time", ends, "since before the outage")


async def _outage(intents: Intents, faults: Faults) -> None:
    """Cuts the worker off from Redis for a short while."""
    async with faults.during("cut", f"{intents.worker}-redis"):
        await intents.T.sleep(intents.T.short_outage, "a short outage, well below the life of a lease")
