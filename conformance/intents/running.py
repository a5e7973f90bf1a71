"""Sessions that run, and workers that run them: steps that checks of several groups share."""

from holdfast.check.finding import NotApplicable, demand
from holdfast.check.timeline import Moment
from holdfast.conformance.intents.client import Intents, Session

# Nodes of a check that has to know which worker runs its sessions.
ONE_OF_EACH = {"api": 1, "worker": 1}
WITH_STANDBY = {"api": 1, "worker": 2}


async def runs_on_first(intents: Intents, ref: str | None = None, profile: str | None = None) -> Session:
    """Lets a session run on the first worker and starts the second one after it: w1 runs A, w2 is up.

    For checks whose nodes are started by hand: a worker that is not there yet can't have taken the start.
    """
    first, *others = intents.lone_workers
    if not others:
        raise NotApplicable("the target has one worker")
    await intents.deployment.start_nodes(*intents.apis, first)
    session = await intents.running(ref, profile)
    await intents.deployment.start_nodes(others[0])
    return session


async def lease_keys(intents: Intents, session: Session) -> tuple[str, str]:
    """Returns the names of both leases of a running session: svc(R) and tun(n)."""
    tuners = await intents.store.tuners_of(session.id)
    with intents.context.arranging("IN-RUN-02"):
        demand(len(tuners) == 1, "one tuner lease of the session", ", ".join(tuners) or "none", "a running session")
    return intents.store.service(session.target), tuners[0]


async def pipeline_asked(intents: Intents, session: Session) -> None:
    """Waits until the pipeline of the session's channel was asked to start."""

    async def asked() -> bool:
        return await intents.runs(session.target) > 0

    T = intents.T
    with intents.context.arranging("IN-RUN-02"):
        await T.until(asked, give_up=T.give_up, what="the pipeline to be asked to start", every=T.sample_fast)


async def drained(intents: Intents, worker: str) -> Moment:
    """Ends a worker gracefully and judges that it exits in time; returns when it had."""
    asked = intents.T.now()
    status, _ = await intents.term(worker, intents.never("drain_max"))
    exited = intents.T.now()
    demand(status is not None, "an exit after SIGTERM", f"it still runs after {exited.hi - asked.lo:.1f} s")
    intents.T.at_most("drain_max", since=asked, seen=exited, what="the exit of the worker")
    return exited
