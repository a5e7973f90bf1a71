"""When things happened, and whether that was in time.

Nothing that happens inside a target can be timed exactly from outside, so a moment is an interval [lo, hi] in which it
surely happened: a call was sent at lo and answered at hi, or a poll did not show it yet at lo and showed it at hi. The
time between two moments is an interval too. A judgement uses the end that speaks for the target: entirely inside the
budget holds, entirely past it is missed, an interval with the limit inside it is undecided. Lateness that is no greater
than the harness's lag and the nodes' run queues is the machine's. Earliness never is: a busy machine makes nothing
happen sooner.

Percentiles make no assumption about the distribution. The k-th greatest of n independent samples lies above the
quantile with a probability that the binomial distribution gives; the smallest such sample whose confidence is high
enough bounds the quantile. With fewer samples than `needed` there is none, and nothing is said.
"""

import math
import time
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Moment:
    """Something that happened between `lo` and `hi`, on the monotonic clock."""

    lo: float
    hi: float

    @classmethod
    def now(cls) -> "Moment":
        at = time.monotonic()
        return cls(at, at)

    def since(self, earlier: "Moment") -> "Elapsed":
        """Returns the least and the most time that may have passed between the two."""
        return Elapsed(max(0.0, self.lo - earlier.hi), max(0.0, self.hi - earlier.lo))


@dataclass(frozen=True)
class Elapsed:
    """A duration between `lo` and `hi` seconds."""

    lo: float
    hi: float


class Judgement(StrEnum):
    HOLDS = "holds"
    MISSED = "missed"
    STRADDLES = "straddles"
    MACHINE = "machine"


def judge_at_most(elapsed: Elapsed, limit: float, explained: float = 0.0) -> Judgement:
    """Judges against an upper limit; `explained` is the lateness that our lag and the run queues account for."""
    if elapsed.hi <= limit:
        return Judgement.HOLDS
    if elapsed.lo <= limit:
        return Judgement.STRADDLES
    return Judgement.MACHINE if elapsed.lo - explained <= limit else Judgement.MISSED


def judge_at_least(elapsed: Elapsed, limit: float) -> Judgement:
    """Judges against a lower limit; no machine excuses what came too early."""
    if elapsed.lo >= limit:
        return Judgement.HOLDS
    return Judgement.MISSED if elapsed.hi < limit else Judgement.STRADDLES


@dataclass(frozen=True)
class Percentile:
    """`value` is an upper bound of the quantile with the given confidence; None for fewer samples than `needed`."""

    quantile: float
    confidence: float
    samples: int
    value: float | None
    needed: int


def samples_needed(quantile: float, confidence: float = 0.95, misses: int = 0) -> int:
    """Returns how many independent trials bound the quantile if `misses` of them miss (for 0.95: 59, 93, 124, …)."""
    n = math.ceil(math.log(1 - confidence) / math.log(quantile))
    while at_most_chance(misses, n, 1 - quantile) > 1 - confidence:
        n += 1
    return n


def upper_bound(samples: list[float], quantile: float, confidence: float = 0.95) -> Percentile:
    """Returns the smallest sample that lies above the quantile with this confidence."""
    ordered, n = sorted(samples), len(samples)
    needed = samples_needed(quantile, confidence)
    if n < needed:
        return Percentile(quantile, confidence, n, None, needed)
    misses = 0
    while misses + 1 < n and at_most_chance(misses + 1, n, 1 - quantile) <= 1 - confidence:
        misses += 1
    return Percentile(quantile, confidence, n, ordered[n - 1 - misses], needed)


def at_most_chance(k: int, n: int, p: float) -> float:
    """Returns the chance of at most k misses in n trials, each of which misses with chance p.

    Computed with logarithms: beyond some thousand samples the coefficients overflow a float.
    """
    terms = (math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(k + 1))
    return math.fsum(math.exp(c + i * math.log(p) + (n - i) * math.log1p(-p)) for i, c in enumerate(terms))
