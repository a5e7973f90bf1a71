"""Workers that are killed, suspended or told to stop (C1 … C4, C14)."""

from holdfast.check.faults import Faults
from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import PHASE_1, Intents, Session
from holdfast.conformance.intents.kills import Recovered, busy_until_expiry, refused_until_expiry, soon
from holdfast.conformance.intents.running import ONE_OF_EACH, WITH_STANDBY, drained, runs_on_first
from holdfast.conformance.intents.scenarios.watch import watching
from holdfast.conformance.intents.wire import Answer, ended, shown
from holdfast.conformance.shared.wire import Request

SESSIONS = 4


@verifies(
    "IN-KILL-08", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="kill_cycles*(start_ready + recover_ready)"
)
async def test_c01_worker_killed_and_restarted(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """Ten times on one channel: the next start runs at once."""
    worker, profiles = intents.lone_workers[0], intents.profiles[:2]
    async with watching(intents) as watch:
        old = await intents.running(profile=profiles[0])
        for cycle in range(1, T.count("kill_cycles") + 1):
            async with faults.during("kill", worker) as window:
                killed = Moment(window.asked, window.in_force)
                watch.killed(killed)
            new = await intents.begin(old.target, profiles[cycle % 2])
            verdict, ready = await intents.verdict(new)
            expect(verdict, shown(*intents.running_states), why=f"the start after kill {cycle}")
            soon(intents, Recovered(old, new, killed, Moment(window.healing, window.healed), ready))
            T.at_most("recover_p95", since=killed, seen=ready, what=f"the channel again after kill {cycle}")
            old = new


@verifies(
    "IN-KILL-03",
    part=2,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="start_ready + free_again + recover_ready",
)
async def test_c02_worker_killed_in_phase_1(intents: Intents, faults: Faults) -> None:
    """Without a restart the channel is 409 until the lease ends, and then accepted."""
    worker, (first, second) = intents.lone_workers[0], intents.profiles[:2]
    async with watching(intents) as watch:
        held = await intents.running(profile=first)
        async with faults.during("kill", worker) as window:
            killed = Moment(window.asked, window.in_force)
            watch.killed(killed)
            await refused_until_expiry(intents, held, second, killed)


@verifies(
    "IN-KILL-04",
    part=2,
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="start_ready + standby_ready + recover_ready",
)
async def test_c03_worker_killed_beside_a_standby(intents: Intents, faults: Faults) -> None:
    """The standby rejects until the leases end and runs the channel then; the API never fails meanwhile."""
    failed = list[str]()

    def heard(request: Request, answer: Answer) -> None:
        if not answer.answered or answer.status >= 500:
            failed.append(f"{request.path}: {answer.describe()}")

    await intents.slots(1)
    async with watching(intents) as watch:
        held = await runs_on_first(intents)
        intents.listeners.append(heard)
        async with faults.during("kill", intents.lone_workers[0]) as window:
            killed = Moment(window.asked, window.in_force)
            watch.killed(killed)
            await busy_until_expiry(intents, held, killed)
            demand(not failed, "an answer to every call, none of 5xx", "; ".join(failed), "without the first worker")
            await watch.judge(slots=1)


@verifies(
    "IN-RUN-05",
    part=3,
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="2*probe_past_ttl + 4*start_ready",
)
async def test_c04_worker_suspended_until_another_took_over(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """The suspended worker goes on after its leases ran out: the new holder keeps lease and channel."""
    async with watching(intents, grace=T.renewal_due):
        old = await runs_on_first(intents, profile=intents.profiles[0])
        async with faults.during("stop", intents.lone_workers[0]):
            await T.sleep(T.probe_past_ttl, "the leases of the suspended worker to run out")
            new = (await intents.retry(old.target, intents.profiles[1])).session
        await _keeps_lease(intents, new)
        expect(await intents.poll(old), ended(), why="the session of the suspended worker")


async def _keeps_lease(intents: Intents, session: Session) -> None:
    key = intents.store.service(session.target)

    async def look() -> None:
        expect((await intents.store.lease(key)).owner, session.id, why=f"owner of {key}")
        expect(await intents.poll(session), shown(*intents.running_states), why="the new session")

    T = intents.T
    await intents.throughout(look, T.probe_past_ttl, "lease and session of the new holder", every=T.sample_every)


@verifies("IN-RUN-07", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + drain_max")
async def test_c14_worker_told_to_stop(intents: Intents) -> None:
    """Four sessions run when the worker is told to stop: it ends them all and leaves no lease."""
    async with watching(intents):
        sessions = [await intents.running() for _ in range(SESSIONS)]
        await drained(intents, intents.lone_workers[0])
        left = ", ".join(await intents.store.leases())
        demand(not left, "no lease", left, "once the worker has exited")
        for session in sessions:
            expect(await intents.poll(session), ended(), why="its session once the worker has exited")
