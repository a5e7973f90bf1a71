"""Redis away, slow or empty (C5 … C8, C11)."""

from contextlib import AsyncExitStack
from functools import partial

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.keyspace import GONE, Keyspace
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH, lease_keys
from holdfast.conformance.intents.scenarios.watch import watching
from holdfast.conformance.intents.wire import Answer, accepted, ended, refused
from holdfast.conformance.shared.wire import status

SESSIONS = 4
# Within how many times accept_fast a start is accepted once an outage is over: two seconds.
BACK = 4
# Seconds of the spec's time for which a worker is cut off, longer than a lease lives.
LONG_OUTAGE = 40


@verifies(
    "IN-KILL-09", part=4, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + short_outage + renewal_due"
)
async def test_c05_worker_cut_off_for_a_moment(intents: Intents, faults: Faults, keys: Keyspace, T: SpecTime) -> None:
    """A sixth of the life of a lease: all sessions survive, no lease lapses, nothing is flushed."""
    async with watching(intents):
        sessions = [await intents.running() for _ in range(SESSIONS)]
        leases = [key for session in sessions for key in await lease_keys(intents, session)]
        since = T.now()
        async with faults.during("cut", f"{intents.worker}-redis"):
            await T.sleep(T.short_outage, "a short outage")
        still = [partial(intents.undisturbed, session, T.renewal_due, "a short outage") for session in sessions]
        await intents.parallel(still)
        for key in leases:
            ends = ", ".join(event.kind for event in await keys.events(key, *GONE, since=since))
            demand(not ends, f"{key} there all the time", ends, "since before the outage")


@verifies(
    "IN-RUN-05",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    needs=("chaos.partition",),
    waits="3*start_ready + 2*lease_ttl + lost_lease_end",
)
async def test_c06_worker_cut_off_for_long(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """Longer than its leases live: the session ends once the worker is back, and the channel can be started."""
    async with watching(intents, grace=T.renewal_due):
        lost = await intents.running()
        async with faults.during("cut", f"{intents.worker}-redis") as window:
            await T.sleep(T.scaled(LONG_OUTAGE), "an outage that no lease survives")
        healed = Moment(window.healing, window.healed)

        async def over() -> Answer | None:
            seen = await intents.poll(lost)
            return seen if seen.terminal else None

        verdict, _ = await intents.comes(over, "lost_lease_end", since=healed, what="the end of the lost session")
        expect(verdict, ended("R_LEASE_EXPIRED"), why="a session whose leases ran out in an outage")
        await intents.retry(lost.target, lost.profile, unlike=lost)


@verifies(
    "IN-QUEUE-07",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    needs=("chaos.partition", "redis"),
    waits="store_fail_answer + 2*start_ready",
)
async def test_c07_api_cut_off(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """Starts are 503 and never 202, are accepted soon after, and no session is written half."""
    async with watching(intents):
        async with faults.during("cut", f"{intents.apis[0]}-redis") as window:
            starts = [partial(intents.start, intents.channel()) for _ in range(T.count("few_starts"))]
            for answer in await intents.parallel(starts):
                expect(answer, refused(503), why="a start while the store is away")
                sent, seen = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
                T.at_most("store_fail_answer", since=sent, seen=seen, what="503 while the store is away")
        session = await intents.begin_after()
        healed = Moment(window.healing, window.healed)
        T.at_most("accept_fast", since=healed, seen=session.accepted, times=BACK, what="the first start after it")
        await intents.ready(session)
        await _nothing_half_written(intents)


async def _nothing_half_written(intents: Intents) -> None:
    """Judges that each record has its start on the bus, and each start on the bus its record."""
    records = {key.removeprefix(intents.store.name("session", "")) for key in await intents.store.sessions()}
    started = {event.session_id for event in await intents.store.events()}
    half = ", ".join(sorted(records ^ started))
    demand(not half, "records and events of the same sessions", f"only one of the two for {half}", "after the outage")


@verifies("IN-HERD-06", isolation="disruptive", nodes=ONE_OF_EACH, busy=True, waits="admission_max + start_ready")
async def test_c08_herd_over_a_slow_redis(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """A hundred starts while each command takes long: all accepted in time, one session, one tuner lease."""
    ref = intents.channel()
    async with watching(intents), AsyncExitStack() as stack:
        for node in intents.nodes:
            delay = faults.during("delay", f"{node}-redis", seconds=T.store_latency, jitter=T.store_jitter)
            await stack.enter_async_context(delay)
        sent = T.now()
        answers = await intents.burst([partial(intents.start, ref)] * T.count("herd_size"))
        for answer in answers:
            expect(answer, accepted(answers[0].session_id), why="one of a herd of identical starts")
        last = max(answer.received for answer in answers)
        T.at_most("admission_max", since=sent, seen=Moment(last, last), what="the herd accepted")
        await intents.ready(Session(answers[0].session_id, ref, intents.profiles[0], answers[0]))
        tuners = ", ".join(await intents.store.leases("tuner"))
        demand(len(tuners.split(", ")) == 1, "one tuner lease", tuners, "of a herd")


@verifies(
    "IN-QUEUE-07", isolation="disruptive", nodes=ONE_OF_EACH, needs=("chaos.redis",), waits="start_ready + recover_p95"
)
async def test_c11_redis_comes_back_empty(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """The API recovers by itself, does not know the old sessions any more, and new starts run soon."""
    old = await intents.running()
    async with faults.during("empty", "redis") as window:
        pass
    healed = Moment(window.healing, window.healed)

    async def known() -> Answer | None:
        seen = await intents.poll(old)
        expect(seen, status(404), status(503), why="a session of before")
        return seen if seen.status == 404 else None

    await T.until(known, give_up=T.give_up, what="404 for a session of before")
    session = await intents.begin_after()

    async def ready() -> bool:
        seen = await intents.poll(session)
        demand(not seen.terminal, "a session that runs", seen.describe(), "started after Redis came back")
        return seen.state in intents.running_states

    await intents.comes(ready, "recover_p95", since=healed, what="a new session running")
