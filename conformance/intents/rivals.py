"""Sessions that want the same channel: one runs, and all others are rejected as busy."""

from collections.abc import Sequence
from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.wire import Answer, ended_busy


async def ends_busy(intents: Intents, holder: Session, profile: str) -> tuple[Session, Answer]:
    """Starts a channel that is held and judges that the session is rejected as busy; returns it, and the verdict."""
    session = await intents.begin(holder.target, profile)
    verdict = await intents.decided(session)
    expect(verdict, ended_busy(), why="a start of a channel that is held")
    return session, verdict


async def one_wins(intents: Intents, rivals: Sequence[Session], why: str) -> Session:
    """Waits until each is decided, judges that exactly one runs and all others ended as busy, and returns the one."""
    verdicts = await intents.parallel([partial(intents.decided, rival) for rival in rivals])
    winners = [rival for rival, seen in zip(rivals, verdicts, strict=True) if seen.state in intents.running_states]
    shown = "; ".join(sorted(seen.describe() for seen in verdicts))
    demand(len(winners) == 1, "exactly one session that runs", shown, why)
    for rival, seen in zip(rivals, verdicts, strict=True):
        if rival not in winners:
            expect(seen, ended_busy(), why=f"{why}: all but one")
    return winners[0]
