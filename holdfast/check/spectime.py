"""The spec's time as a check uses it: `T.grace` in real seconds, waiting with a reason, judging against budgets.

A check never reads a clock or writes down seconds. It waits (`sleep`, `sleep_until`, `until`) and gets *moments*, which
are intervals (`holdfast.check.timeline`); it then holds two moments against a timing of the catalogue (`at_most`,
`at_least`, `percentile`). Each judgement is recorded for the report and ends in one of four ways:

- inside the budget: the check goes on;
- past the budget: Finding, or only a warning where the budget is the suite's own bound and not the spec's;
- the interval straddles the limit: Inconclusive;
- past the budget, but by no more than the machine took from the harness or the nodes meanwhile: Inconclusive.

Only lateness is ever excused. `until` waits longer by what the machine took (at most twice its `give_up`), so that a
busy machine makes a run longer and not red; nothing makes an event that came too early acceptable.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Self, TypeVar

from holdfast.check.context import Context
from holdfast.check.decisive import judged
from holdfast.check.evidence import JudgedTiming
from holdfast.check.finding import Finding, Inconclusive, Unsafe
from holdfast.check.timeline import Elapsed, Judgement, Moment, judge_at_least, judge_at_most, upper_bound
from holdfast.spec.timings import OURS_TO_WARN, Scaled, Timings

R = TypeVar("R")
# Seconds between two looks at a condition: well below every tolerance floor, well above a round trip.
POLL = 0.05
# Shorter waits get no step in the report: they belong to polling and would hide the other steps.
WORTH_A_STEP = 0.25
# Share of the time in run queues above which latencies measure the machine and not the target.
STARVED = 0.2


class SpecTime:
    """Durations by name (`T.grace`), limits (`T.count("name")`), waiting, and judging what was observed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.timings: Timings = context.timings

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(context)

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.timings.of(name).seconds

    def count(self, name: str) -> int:
        return self.timings.count(name)

    def share(self, name: str) -> float:
        return self.timings.share(name)

    def never(self, name: str) -> float:
        """Returns the seconds after which what this timing waits for does not happen any more (`Timings.never`)."""
        return self.timings.never(name)

    def scaled(self, spec_seconds: float) -> float:
        """Returns a plain figure of an `observe` text ("at 30 s") in this run's seconds."""
        return spec_seconds * self.timings.scale

    def now(self) -> Moment:
        at = self._context.mark_time()
        return Moment(at, at)

    async def sleep(self, seconds: float, why: str) -> None:
        """Waits; `why` is shown to whoever watches the run, and in the report."""
        self._context.mark_time()
        if seconds <= 0:
            return
        self._context.say_waiting(why, seconds)
        with self._context.step(f"wait {seconds:.2f} s: {why}") if seconds >= WORTH_A_STEP else nullcontext():
            await asyncio.sleep(seconds)

    async def sleep_until(self, since: Moment, seconds: float, why: str) -> None:
        """Waits until `seconds` after a moment, counted from when it surely had happened."""
        await self.sleep(since.hi + seconds - time.monotonic(), why)

    async def until(
        self,
        condition: Callable[[], Awaitable[R | None]],
        *,
        give_up: float,
        what: str,
        since: Moment | None = None,
        every: float = POLL,
    ) -> tuple[R, Moment]:
        """Polls until the condition returns a value other than None or False; returns it, and when it came true.

        Raises Finding after `give_up` seconds from `since` on, plus what the machine took from us and the nodes
        meanwhile. If the first look shows it already, it may have come true at any time since `since`.
        """
        start = since or self.now()
        end, not_yet = start.hi + give_up, start.lo
        self._context.say_waiting(what, give_up)
        with self._context.step(f"until {what}"):
            while True:
                asked = time.monotonic()
                value = await condition()
                if value is not None and value is not False:
                    judged()
                    return value, Moment(not_yet, time.monotonic())
                not_yet = asked
                if time.monotonic() > end + min(give_up, self.held_back(start)):
                    waited = f"it had not happened after {time.monotonic() - start.lo:.2f} s"
                    raise Finding([f"{what} within {give_up:.2f} s"], waited, late=True)
                await asyncio.sleep(every)

    def held_back(self, since: Moment, until: float | None = None) -> float:
        """Returns the seconds that the machine may have added since: our longest lag, the nodes' time in run queues."""
        lag = self._context.audit.lag_between(since.lo, time.monotonic() if until is None else until)
        return lag + self._context.queued_since(since.lo)

    @contextmanager
    def unless(self, held_back: Callable[[], float], room: float) -> Iterator[None]:
        """Turns a finding of the block into Inconclusive if `held_back()` is `room` seconds or more by then.

        What is `Unsafe` stays a finding: no delay explains it.
        """
        try:
            yield
        except Unsafe:
            raise
        except Finding as finding:
            held = held_back()
            if held < room or not finding.excusable:
                raise
            raise Inconclusive(f"the machine delayed us or the nodes by {held:.2f} s: {finding}") from finding

    def at_most(
        self,
        budget: str,
        *,
        since: Moment,
        seen: Moment,
        tolerance: str | None = None,
        times: float = 1.0,
        what: str = "",
    ) -> None:
        """Judges that `seen` came no later than `times` budgets, plus the tolerance, after `since`."""
        scaled = self.timings.of(budget)
        allowance = self.timings.of(tolerance).seconds if tolerance else 0.0
        elapsed = seen.since(since)
        explained = self.held_back(since, seen.hi)
        limit = scaled.seconds * times + allowance
        judgement = judge_at_most(elapsed, limit, explained)
        self._record(scaled, limit, allowance, elapsed, judgement, _room(limit - elapsed.hi, limit))
        self._conclude(scaled, judgement, elapsed, f"{what or 'it'} at most {limit:.2f} s")

    def at_least(
        self, budget: str, *, since: Moment, seen: Moment, tolerance: str | None = None, what: str = ""
    ) -> None:
        """Judges that `seen` came no earlier than the budget, less the tolerance, after `since`."""
        scaled = self.timings.of(budget)
        allowance = self.timings.of(tolerance).seconds if tolerance else 0.0
        elapsed = seen.since(since)
        limit = scaled.seconds - allowance
        judgement = judge_at_least(elapsed, limit)
        self._record(
            scaled, scaled.seconds + allowance, allowance, elapsed, judgement, _room(elapsed.lo - limit, limit)
        )
        self._conclude(scaled, judgement, elapsed, f"{what or 'it'} at least {limit:.2f} s")

    def percentile(
        self,
        budget: str,
        samples: Sequence[float],
        quantile: float,
        *,
        spans: Sequence[Moment] | None = None,
        queued: Sequence[float] | None = None,
        since: Moment | None = None,
    ) -> None:
        """Judges a quantile by order statistics on independent trials. Raises Inconclusive for too few samples.

        `spans` (from when to when each sample ran) limits what our own lag excuses to the samples in which it occurred.
        `queued` (how long the nodes of each sample waited in run queues) excuses that much of the sample. `since` (when
        the sampling began) excuses everything if the nodes got too little processor time since then.
        """
        scaled, bound = self.timings.of(budget), upper_bound(list(samples), quantile)
        if bound.value is None:
            raise Inconclusive(f"{budget}: {bound.samples} samples, {bound.needed} are needed for P{quantile * 100:g}")
        elapsed = Elapsed(bound.value, bound.value)
        limit, note = scaled.seconds, f"P{quantile * 100:g} of {bound.samples}"
        starved = self._starved(since)
        explained = math.inf if starved else self._lag_in(samples, quantile, bound.value, spans, queued)
        judgement = judge_at_most(elapsed, limit, explained)
        self._record(scaled, limit, 0.0, elapsed, judgement, _room(limit - bound.value, limit), note)
        self._conclude(scaled, judgement, elapsed, f"{note} under {limit:.3f} s")

    def _lag_in(
        self,
        samples: Sequence[float],
        quantile: float,
        bound: float,
        spans: Sequence[Moment] | None,
        queued: Sequence[float] | None,
    ) -> float:
        """Returns by how much the percentile would be lower on a machine that delays nobody."""
        lag_between = self._context.audit.lag_between
        if spans is None:
            return lag_between(self._context.transcript.started, time.monotonic())
        waits = queued or [0.0] * len(samples)
        own = [
            sample - lag_between(span.lo, span.hi) - wait
            for sample, span, wait in zip(samples, spans, waits, strict=True)
        ]
        without = upper_bound(own, quantile).value
        return bound - without if without is not None else 0.0

    def _starved(self, since: Moment | None) -> bool:
        """Whether the nodes have waited in run queues so much that calls piled up behind each other."""
        if since is None:
            return False
        return self._context.queued_since(since.lo) > STARVED * (time.monotonic() - since.lo)

    def _record(
        self,
        scaled: Scaled,
        limit: float,
        allowance: float,
        elapsed: Elapsed,
        judgement: Judgement,
        margin: float,
        note: str = "",
    ) -> None:
        """Notes the judgement for the report, whatever it was."""
        judged()
        self._context.measured.append(
            JudgedTiming(
                name=scaled.timing.name,
                source=scaled.source,
                kind=scaled.kind,
                budget_s=round(limit - allowance, 4),
                floor_s=scaled.floor,
                tolerance_s=round(allowance, 4),
                observed_s=[round(elapsed.lo, 4), round(elapsed.hi, 4)],
                margin=margin,
                verdict=judgement,
                note=note,
            )
        )

    def _conclude(self, scaled: Scaled, judgement: Judgement, elapsed: Elapsed, expected: str) -> None:
        """Raises Finding or Inconclusive, warns, or returns, as the module docstring says."""
        budget, seen = scaled.timing.name, f"between {elapsed.lo:.3f} and {elapsed.hi:.3f} s"
        undecided = judgement in (Judgement.STRADDLES, Judgement.MACHINE)
        if undecided and self._context.warnings and scaled.kind in OURS_TO_WARN:
            return  # the check warns already, and this could only have made it warn once more
        match judgement:
            case Judgement.STRADDLES:
                raise Inconclusive(f"{budget}: {seen} straddles the limit ({expected})")
            case Judgement.MACHINE:
                raise Inconclusive(f"{budget}: {seen}, which the machine's own lag explains ({expected})")
            case Judgement.MISSED if scaled.kind in OURS_TO_WARN:
                self._context.warn(f"{budget}: expected {expected}, seen {seen}")
            case Judgement.MISSED:
                raise Finding([f"{expected} ({budget})"], seen, late=True)
            case Judgement.HOLDS:
                return


def _room(left: float, limit: float) -> float:
    """Returns how much of the limit was left, as a share of it; negative when it was missed."""
    return round(left / limit, 4) if limit else 0.0
