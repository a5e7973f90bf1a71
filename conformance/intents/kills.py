"""What comes after a kill -9 of the worker: steps that checks and chaos scenarios share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.check.finding import Inconclusive, demand, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.wire import Answer, accepted, ended_busy, ended_without_tuner, refused, shown

# What else a check looks at after each answer or verdict.
Look = Callable[[Session, Answer], Awaitable[None]]


async def nothing_else(_session: Session, _answer: Answer) -> None:
    """Looks at nothing else."""


@dataclass(frozen=True)
class Recovered:
    """One kill with an immediate restart: the session before, the one after, and when each step was."""

    old: Session
    new: Session
    killed: Moment
    started: Moment
    ready: Moment


async def recovers(intents: Intents) -> Recovered:
    """Kills the worker under a running session, starts it again, and judges that its channel can be started at once.

    The new start is of another profile, as the old session may still answer for its own.
    """
    first, second = intents.profiles[:2]
    old = await intents.running(profile=first)
    killed = await intents.kill(intents.worker)
    started = await intents.restart(intents.worker)
    new = await intents.begin(old.target, second)
    verdict, ready = await intents.verdict(new)
    expect(verdict, shown(*intents.running_states), why="a start of the channel after kill and restart")
    return Recovered(old, new, killed, started, ready)


def soon(intents: Intents, recovered: Recovered) -> None:
    """Judges that the channel was there at once, not when its lease had run out."""
    what = "the channel running again"
    intents.T.at_most("lease_left", since=recovered.killed, seen=recovered.ready, what=f"{what} after the kill")
    intents.T.at_most("recover_ready", since=recovered.started, seen=recovered.ready, what=f"{what} after the start")


async def refused_until_expiry(
    intents: Intents, held: Session, profile: str, killed: Moment, look: Look = nothing_else
) -> None:
    """Phase 1: judges that starts of the dead session's channel are 409 until its lease has run out, and then 202."""
    T = intents.T

    async def taken() -> Answer | None:
        answer = await intents.start(held.target, profile)
        expect(answer, accepted(), refused(409), why="a start of the dead session's channel")
        await look(held, answer)
        return answer if answer.status == 202 else None

    what = "the channel accepted again"
    answer, _ = await intents.comes(taken, "free_again", since=killed, what=what, every=T.probe_every)
    seen = Moment(answer.sent, answer.received)
    T.at_least("lease_left", since=killed, seen=seen, tolerance="lease_slack", what=what)


async def busy_until_expiry(intents: Intents, held: Session, killed: Moment, look: Look = nothing_else) -> Session:
    """Phase 2, one slot: judges that the other worker finds channel and tuner taken until the lease has run out.

    Returns the session that then runs on the channel.
    """
    T, profile, elsewhere = intents.T, intents.profiles[1], intents.channel()
    while T.now().hi < killed.lo + T.lease_left - T.lease_slack:
        probe = T.now()
        rival, other = await intents.begin(held.target, profile), await intents.begin(elsewhere, profile)
        for session, legal in ((rival, ended_busy()), (other, ended_without_tuner())):
            verdict, decided = await intents.verdict(session)
            expect(verdict, legal, shown(*intents.running_states), why="a start before the lease has run out")
            if not verdict.terminal:
                what = "a session that runs where another's lease was"
                T.at_least("lease_left", since=killed, seen=decided, tolerance="lease_slack", what=what)
                await intents.stopped(session)
            await look(session, verdict)
        await T.sleep_until(probe, T.probe_every, "the next two starts")

    async def runs() -> Session | None:
        session = await intents.begin(held.target, profile)
        verdict = await intents.decided(session)
        await look(session, verdict)
        if not verdict.terminal:
            return session
        demand(verdict.rejected, "READY, or rejected for the lease of the dead session", verdict.describe())
        return None

    what = "the channel running on the other worker"
    session, _ = await intents.comes(runs, "standby_ready", since=killed, what=what, every=T.probe_every)
    return session


async def queued_meanwhile(intents: Intents) -> tuple[Session, Moment]:
    """Kills the worker under a running session, starts its channel in another profile, and starts the worker again.

    Returns the session that was queued, and when the worker was started. Raises Inconclusive if that was too late.
    """
    first, second = intents.profiles[:2]
    held = await intents.running(profile=first)
    killed = await intents.kill(intents.lone_workers[0])
    queued = await intents.begin(held.target, second)
    started = await intents.restart(intents.worker)
    if started.hi > killed.lo + intents.T.lease_left:
        raise Inconclusive(f"the worker was back only {started.hi - killed.lo:.2f} s after the kill")
    return queued, started


async def restart_api(intents: Intents) -> Moment:
    """Starts the API again; its worker, which must not be the same process, goes on."""
    _ = intents.lone_workers
    return await intents.restart(intents.apis[0])
