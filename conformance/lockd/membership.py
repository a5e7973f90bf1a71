"""What checks of membership share: judging periods at a spy, endpoints that nobody serves, store faults.

A period is judged from the gaps between calls as a spy saw them. Three outcomes are kept apart, because the spec states
the period and the tolerance is the suite's: gaps within the tolerance hold; a median gap that is off by more than half
a period means that the node uses another period, which is a finding; anything between is jitter and only warns. Gaps
that the machine's own delay explains are Inconclusive. So are those at a spy that was late: a call that the node gave
up is repeated when the node likes.
"""

import contextlib
import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.check.finding import Finding, Inconclusive
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd.spy import Call, Spy

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

# A median gap that is off by more than this share means another period, not jitter.
ANOTHER_PERIOD = 0.5


def nowhere(number: int) -> str:
    """Returns an endpoint on loopback at which nobody listens; higher numbers sort after lower ones."""
    return f"https://127.0.0.1:{100 + number}"


async def per_interval(
    spy: Spy,
    path: str,
    count: int,
    *,
    sender: str | None = None,
    since: Moment | None = None,
    where: Callable[[Call], bool] = lambda _call: True,
    period: str = "membership_interval",
    tolerance: str = "tick_tolerance_percent",
) -> list[Call]:
    """Waits for `count` calls on this path, one per period, judges the gaps between them, and returns the calls."""
    T = spy.lockd.T
    start, seconds = since or T.now(), T.timings.of(period).seconds

    async def look() -> list[Call] | None:
        found = [call for call in spy.got_from(sender, path, since=start) if where(call)]
        return found[:count] if len(found) >= count else None

    with spy.excused():
        # One more period than gaps: the first call may come a whole period after the start.
        calls, _ = await T.until(
            look, give_up=(count + 1) * seconds * (1 + ANOTHER_PERIOD), since=start, what=f"{count} calls of {path}"
        )
        judge_gaps(spy, [call.at for call in calls], period, tolerance, start)
    return calls


def judge_gaps(spy: Spy, times: list[float], period: str, tolerance: str, since: Moment) -> None:
    """Raises Finding for another period, Inconclusive for a slow machine; warns past the tolerance."""
    T = spy.lockd.T
    seconds, percent = T.timings.of(period).seconds, T.share(tolerance)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    if not gaps:
        return
    allowed = max(seconds * percent / 100, T.timings.of("clock_slack").floor)
    worst = max(gaps, key=lambda gap: abs(gap - seconds))
    shown = ", ".join(f"{gap:.2f}" for gap in gaps)
    if abs(worst - seconds) <= allowed:
        return
    if abs(worst - seconds) - T.held_back(since) <= allowed:
        raise Inconclusive(f"gaps of {shown} s, which the machine's own delay explains")
    if spy.was_late:
        raise Inconclusive(f"{spy.was_late}: gaps of {shown} s")
    if abs(statistics.median(gaps) - seconds) > seconds * ANOTHER_PERIOD:
        raise Finding([f"one call every {seconds:.2f} s"], f"gaps of {shown} s", period)
    spy.lockd.context.warn(f"{period}: expected gaps of {seconds:.2f} s within {percent:g} %, seen {shown}")


@contextlib.contextmanager
def unless_calls_failed(lockd: "Lockd", since: Moment, *peers: Spy) -> Iterator[None]:
    """Put around judgements of what a node achieved by calling its peers since then.

    Where the machine held us or the nodes back for as long as a node waits for an answer, a call may have failed, and
    the node was right to go on without it. A finding becomes Inconclusive then, and if one of these spies was late.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(lockd.T.unless(partial(lockd.T.held_back, since), lockd.T.peer_call_timeout))
        for spy in peers:
            stack.enter_context(spy.excused())
        yield


@dataclass
class StoreFault:
    """While its file exists, the node that was started with it as `fault_hook` can't read its member list."""

    file: Path

    def begin(self) -> None:
        self.file.touch()

    def end(self) -> None:
        self.file.unlink(missing_ok=True)


@contextlib.contextmanager
def store_fails(lockd: "Lockd") -> Iterator[StoreFault]:
    """Gives a fault for the block; the check begins it, and it has ended after the block."""
    fault = StoreFault(lockd.folder() / "members-unreadable")
    try:
        yield fault
    finally:
        fault.end()
