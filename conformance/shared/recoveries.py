"""Recoveries after many independent kills, judged together as a percentile."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment

# Share of the wanted kills that may be left out because the machine was too slow. Only late ones are, so a target that
# is often late must not pass because of them: this is as many as may be late at this percentile.
MOST_LEFT_OUT = 0.05


@dataclass(frozen=True)
class Recovery:
    """One kill: how long the service was away, from when to when, and how long its nodes waited in run queues."""

    seconds: float
    span: Moment
    queued: float
    surely: float = 0.0

    @classmethod
    def of(cls, killed: Moment, seen: Moment, queued: float) -> Self:
        return cls(seen.hi - killed.lo, Moment(killed.lo, seen.hi), queued, seen.lo - killed.hi)


# Used for a kill that is left out because it can no longer change the verdict: the best possible result.
AT_ONCE = Recovery(0.0, Moment(0.0, 0.0), 0.0)


@dataclass
class Kills:
    """The kills of all deployments together. With this few samples the P95 holds only if none is late.

    A kill after which the machine itself took the time that is over the budget tells nothing about the target, so it is
    not counted and another one takes its place. Too many of those, and nothing can be concluded on this machine.
    """

    wanted: int
    recoveries: list[Recovery] = field(default_factory=list)
    void: int = 0
    late: bool = False

    def take(self, context: Context, recovery: Recovery, budget: float) -> bool:
        """Notes a recovery; returns whether it counts."""
        lag = context.audit.lag_between(recovery.span.lo, recovery.span.hi)
        if self._left_out(recovery, lag, budget):
            machine = f"{recovery.queued + lag:.2f} s were the machine's"
            context.transcript.note(f"not counted: {recovery.seconds:.2f} s, of which {machine}")
            return False
        self.recoveries.append(recovery)
        self.late |= recovery.surely > budget
        return True

    def _left_out(self, recovery: Recovery, lag: float, budget: float) -> bool:
        """Whether the kill does not count; raises Inconclusive once more are left out than may be."""
        if not 0 < recovery.seconds - budget <= recovery.queued + lag:
            return False
        self.void += 1
        if self.void > self.wanted * MOST_LEFT_OUT:
            raise Inconclusive(f"in {self.void} of {self.void + len(self.recoveries)} kills the machine was too slow")
        return True

    def judge(self, T: SpecTime, budget: str, *quantiles: float) -> None:
        """Judges these quantiles; once one kill was late, those that were not made count as recovered at once."""
        every: Sequence[Recovery] = self.recoveries + [AT_ONCE] * (self.wanted - len(self.recoveries))
        for quantile in quantiles:
            T.percentile(
                budget,
                [recovery.seconds for recovery in every],
                quantile,
                spans=[recovery.span for recovery in every],
                queued=[recovery.queued for recovery in every],
            )
