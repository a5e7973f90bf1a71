"""Judges a percentile on independent trials, one after the other, and stops as soon as the answer is proven.

A trial misses if it took longer than the limit. "P95 is below the limit" means that at most one trial in twenty misses.
Nothing is assumed about how the times are distributed: the number of misses is binomial, and that is all.

Who looks after every trial and stops when it suits has many chances to be wrong. So the error of 5 % is shared out over
all possible ends before the first trial: no miss in 59 trials spends 4.85 % of it, and what is left is halved with each
miss. Met is claimed with k misses only after `trials_to_meet(k)` trials, missed at k misses only within
`trials_to_miss(k)`; the sum of all these chances stays below 5 % on either side, whenever one stops.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from holdfast.check.timeline import at_most_chance, samples_needed

QUANTILE, CONFIDENCE = 0.95, 0.95
# Beyond so many misses no campaign goes on.
_MOST = 40


class Proof(StrEnum):
    MET = "met"
    MISSED = "missed"
    OPEN = "open"


@dataclass(frozen=True)
class Standing:
    """What is known after so many trials; `more` is how many further ones without a miss would prove it met."""

    proof: Proof
    trials: int
    misses: int
    more: int
    limit: float
    quantile: float
    confidence: float

    def describe(self) -> str:
        if self.quantile >= 1:
            return f"{self.misses} of {self.trials} trials took longer than {self.limit:g} s"
        percent, sure = f"P{100 * self.quantile:g}", f"{100 * self.confidence:g} % confidence"
        seen = f"{self.misses} of {self.trials} independent trials took longer than {self.limit:g} s"
        if self.proof is Proof.MET:
            return f"{percent} is below {self.limit:g} s with {sure}: {seen}"
        if self.proof is Proof.MISSED:
            return f"{percent} is above {self.limit:g} s with {sure}: {seen}"
        return f"{percent} against {self.limit:g} s is open: {seen}; {self.more} more without a miss would prove it"


@functools.cache
def trials_to_meet(misses: int, quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> int:
    """Returns after how many trials with so many misses the percentile is proven to be below the limit."""
    first = samples_needed(quantile, confidence)
    if misses == 0:
        return first
    left = (1 - confidence - quantile**first) / 2**misses
    n = trials_to_meet(misses - 1, quantile, confidence)
    while at_most_chance(misses, n, 1 - quantile) > left:
        n += 1
    return n


@functools.cache
def trials_to_miss(misses: int, quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> int:
    """Returns within how many trials so many misses prove that the percentile is above the limit; 0 for never."""
    allowed, n = (1 - confidence) / 2 ** max(misses - 1, 0), misses
    if misses < 2:
        return 0
    while 1 - at_most_chance(misses - 1, n, 1 - quantile) <= allowed:
        n += 1
    return n - 1 if n > misses else 0


def _all_of_them(seconds: Iterable[float], limit: float) -> Standing:
    """Judges the longest of these trials alone: nothing is said of further ones."""
    known = list(seconds)
    misses = sum(each > limit for each in known)
    proof = Proof.MISSED if misses else Proof.MET if known else Proof.OPEN
    return Standing(proof, len(known), misses, 0 if known else 1, limit, 1.0, 1.0)


def judge(
    seconds: Iterable[float], limit: float, quantile: float = QUANTILE, confidence: float = CONFIDENCE
) -> Standing:
    """Goes through the trials in the order in which they were made, and stops where the answer was proven."""
    if quantile >= 1:
        return _all_of_them(seconds, limit)
    trials = misses = 0
    for each in seconds:
        trials += 1
        misses += each > limit
        proof = _proof(trials, misses, quantile, confidence)
        if proof is not Proof.OPEN:
            return Standing(proof, trials, misses, 0, limit, quantile, confidence)
    more = trials_to_meet(min(misses, _MOST), quantile, confidence) - trials
    return Standing(Proof.OPEN, trials, misses, max(more, 1), limit, quantile, confidence)


def _proof(trials: int, misses: int, quantile: float, confidence: float) -> Proof:
    counted = min(misses, _MOST)
    if trials >= trials_to_meet(counted, quantile, confidence):
        return Proof.MET if misses <= _MOST else Proof.MISSED
    return Proof.MISSED if trials <= trials_to_miss(counted, quantile, confidence) else Proof.OPEN


def chance_of_being_wrong(quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> float:
    """Returns a bound of the chance to call a percentile met that is exactly at the limit, however one stops."""
    ends = (trials_to_meet(k, quantile, confidence) for k in range(10))
    return math.fsum(at_most_chance(k, n, 1 - quantile) for k, n in enumerate(ends))
