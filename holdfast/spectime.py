"""The spec's time, as a check uses it: `T.grace` in real seconds, waiting with a reason, and judging with budgets."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Self, TypeVar

from holdfast.context import Context
from holdfast.finding import Finding, Inconclusive
from holdfast.timeline import Elapsed, Judgement, Moment, judge_at_least, judge_at_most, upper_bound
from holdfast.timings import OURS_TO_WARN, Scaled, Timings

R = TypeVar("R")
# How often a condition is looked at: well below every tolerance floor, well above a round trip.
POLL = 0.05
# Shorter waits are part of polling, and a step each would drown the others.
WORTH_A_STEP = 0.25
# Seconds in the run queue, per second, from which on latencies tell of the machine and not of the target.
STARVED = 0.2


class SpecTime:
    """Durations by name (`T.grace`), limits (`T.count("queue_cap")`), waiting, and judging what was observed."""

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

    def scaled(self, spec_seconds: float) -> float:
        """A plain figure of an `observe` text ("at 30 s") in this run's time."""
        return spec_seconds * self.timings.scale

    def now(self) -> Moment:
        at = self._context.mark_time()
        return Moment(at, at)

    async def sleep(self, seconds: float, why: str) -> None:
        self._context.mark_time()
        if seconds <= 0:
            return
        self._context.say_waiting(why, seconds)
        with self._context.step(f"wait {seconds:.2f} s: {why}") if seconds >= WORTH_A_STEP else nullcontext():
            await asyncio.sleep(seconds)

    async def sleep_until(self, since: Moment, seconds: float, why: str) -> None:
        """Wait until this long after a moment; measured from when it surely had happened."""
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
        """Poll until the condition gives a value other than None or False; say between which moments it came true.

        Not by `give_up` seconds after `since` is a finding: it did not happen. What the machine held back is waited for
        on top. What the first look shows may have come true at any time from `since` on.
        """
        start = since or self.now()
        end, not_yet = start.hi + give_up, start.lo
        self._context.say_waiting(what, give_up)
        with self._context.step(f"until {what}"):
            while True:
                asked = time.monotonic()
                value = await condition()
                if value is not None and value is not False:
                    return value, Moment(not_yet, time.monotonic())
                not_yet = asked
                if time.monotonic() > end + min(give_up, self.held_back(start)):
                    waited = f"nothing of it after {time.monotonic() - start.lo:.2f} s"
                    raise Finding([f"{what} within {give_up:.2f} s"], waited, late=True)
                await asyncio.sleep(every)

    def held_back(self, since: Moment, until: float | None = None) -> float:
        """What the machine alone may have added since: our loop's longest lag, the nodes' time in run queues."""
        lag = self._context.audit.lag_between(since.lo, time.monotonic() if until is None else until)
        return lag + self._context.queued_since(since.lo)

    @contextmanager
    def unless(self, held_back: Callable[[], float], room: float) -> Iterator[None]:
        """What is found here holds only if the machine has added less than `room` where it counts."""
        try:
            yield
        except Finding as finding:
            held = held_back()
            if held < room:
                raise
            raise Inconclusive(f"the machine held us or the nodes back for {held:.2f} s: {finding}") from finding

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
        """`seen` came no later than the budget after `since`: a missed bound of ours warns, any other miss fails."""
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
        """`seen` came no earlier than the budget after `since`."""
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
        """By order statistics on independent trials; too few samples is never a pass.

        With `spans`, from when to when each sample ran, our own lag excuses only the samples that it fell upon. With
        `queued`, what the nodes of each sample stood in run queues, that excuses this sample too. With `since`, when
        the sampling began, nodes that got no processor meanwhile are excused altogether.
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
        """By how much the percentile would be lower on a machine that holds nobody back."""
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
        """Whether the nodes stood in the run queue for so much of the time that calls piled up behind each other."""
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
        self._context.measured.append(
            {
                "name": scaled.timing.name,
                "source": scaled.source,
                "kind": str(scaled.kind),
                "budget_s": round(limit - allowance, 4),
                "floor_s": scaled.floor,
                "tolerance_s": round(allowance, 4),
                "observed_s": [round(elapsed.lo, 4), round(elapsed.hi, 4)],
                "margin": margin,
                "verdict": str(judgement),
                "note": note,
            }
        )

    def _conclude(self, scaled: Scaled, judgement: Judgement, elapsed: Elapsed, expected: str) -> None:
        budget, seen = scaled.timing.name, f"between {elapsed.lo:.3f} and {elapsed.hi:.3f} s"
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
    """How much of the limit was left over, as a share of it; negative when it was missed."""
    return round(left / limit, 4) if limit else 0.0
