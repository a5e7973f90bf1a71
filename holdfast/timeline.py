"""When things happened, and whether that was in time.

A moment is an interval [lo, hi]: what triggered it was sent at lo and answered at hi, or a poll did not show it yet at
lo and showed it at hi. So is the time between two moments. Entirely inside the budget holds, entirely past it is
missed, straddling is undecided; lateness that the harness's own lag or the nodes' run queue explains is the machine's.
"""

import math
import time
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Moment:
    lo: float
    hi: float

    @classmethod
    def now(cls) -> "Moment":
        at = time.monotonic()
        return cls(at, at)

    def since(self, earlier: "Moment") -> "Elapsed":
        return Elapsed(max(0.0, self.lo - earlier.hi), max(0.0, self.hi - earlier.lo))


@dataclass(frozen=True)
class Elapsed:
    lo: float
    hi: float


class Judgement(StrEnum):
    HOLDS = "holds"
    MISSED = "missed"
    STRADDLES = "straddles"
    MACHINE = "machine"


def judge_at_most(elapsed: Elapsed, limit: float, explained: float = 0.0) -> Judgement:
    """`explained` is how much lateness our own lag and the run queue account for."""
    if elapsed.hi <= limit:
        return Judgement.HOLDS
    if elapsed.lo <= limit:
        return Judgement.STRADDLES
    return Judgement.MACHINE if elapsed.lo - explained <= limit else Judgement.MISSED


def judge_at_least(elapsed: Elapsed, limit: float) -> Judgement:
    """Being early is never the machine's doing."""
    if elapsed.lo >= limit:
        return Judgement.HOLDS
    return Judgement.MISSED if elapsed.hi < limit else Judgement.STRADDLES


@dataclass(frozen=True)
class Percentile:
    """A one-sided statement by order statistics: `value` bounds the quantile with the given confidence."""

    quantile: float
    confidence: float
    samples: int
    value: float | None
    needed: int

    @property
    def enough(self) -> bool:
        return self.value is not None


def samples_needed(quantile: float, confidence: float = 0.95, misses: int = 0) -> int:
    """The fewest independent trials that, with so many misses among them, bound the quantile (0.95: 59, 93, 124, …)."""
    n = math.ceil(math.log(1 - confidence) / math.log(quantile))
    while _binomial_cdf(misses, n, 1 - quantile) > 1 - confidence:
        n += 1
    return n


def upper_bound(samples: list[float], quantile: float, confidence: float = 0.95) -> Percentile:
    """The smallest order statistic that lies above the quantile with this confidence; None when there are too few."""
    ordered, n = sorted(samples), len(samples)
    needed = samples_needed(quantile, confidence)
    if n < needed:
        return Percentile(quantile, confidence, n, None, needed)
    misses = 0
    while misses + 1 < n and _binomial_cdf(misses + 1, n, 1 - quantile) <= 1 - confidence:
        misses += 1
    return Percentile(quantile, confidence, n, ordered[n - 1 - misses], needed)


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """Through logarithms: with some thousand samples the coefficients no longer fit into a float."""
    terms = (math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(k + 1))
    return math.fsum(math.exp(c + i * math.log(p) + (n - i) * math.log1p(-p)) for i, c in enumerate(terms))
