"""What a scenario saw meanwhile, as a history that the invariants judge whatever the faults were.

`Lock` holds the samples of L and knows which values it may have had at a moment; `Owners` the answers of the store to
whose a job is, and knows which jobs had two owners for longer than a job may take to move. Both prove too little rather
than too much: where no sample was possible nothing is known, and any value may have been there.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.lock import Sample


@dataclass
class LockHistory:
    """All samples of L, oldest first."""

    samples: list[Sample] = field(default_factory=list)

    def known_at(self, moment: Moment, slack: float) -> bool:
        """Whether there are samples before and after that moment."""
        return bool(self.samples) and (
            self.samples[0].moment.hi < moment.lo - slack and self.samples[-1].moment.lo > moment.hi + slack
        )

    def held_at(self, moment: Moment, slack: float) -> set[str]:
        """Returns the values that L may have had at that moment, or up to `slack` seconds before or after it.

        Where it changed, the value of the sample before and that of the one after belong to them.
        """
        first = max((each.moment.lo for each in self.samples if each.moment.hi < moment.lo - slack), default=-math.inf)
        last = min((each.moment.hi for each in self.samples if each.moment.lo > moment.hi + slack), default=math.inf)
        return {each.value for each in self.samples if first <= each.moment.lo and each.moment.hi <= last} - {""}

    def endless(self) -> Iterator[str]:
        """Yields each value that was there without an expiry in two samples, one after the other, in words."""
        for one, two in pairwise(self.samples):
            if one.value and one.value == two.value and one.left is None and two.left is None:
                yield two.describe()


@dataclass
class Owners:
    """Jobs that two nodes owned at once, as the store told in look after look: since when, until when."""

    now: dict[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)
    past: list[tuple[tuple[str, str, str], float]] = field(default_factory=list)

    def told(self, jobs_of: Mapping[str, Iterable[str]], moment: Moment) -> None:
        """Takes one look: the jobs of each node, asked one after the other within that moment."""
        both = {
            (job, one, two)
            for one, two in combinations(sorted(jobs_of), 2)
            for job in {*jobs_of[one]} & {*jobs_of[two]}
        }
        for pair in self.now.keys() - both:
            since, last = self.now.pop(pair)
            self.past.append((pair, last - since))
        for pair in both:
            since, _ = self.now.get(pair, (moment.hi, moment.hi))
            self.now[pair] = since, moment.lo

    def doubled(self, longest: float) -> Iterator[str]:
        """Yields each job that two nodes owned for longer than this, in words."""
        still = [(pair, last - since) for pair, (since, last) in self.now.items()]
        for (job, one, two), seconds in [*self.past, *still]:
            if seconds > longest:
                yield f"{job} was {one}'s and {two}'s for {seconds:.1f} s"


def dispatched_twice(entries: Iterable[Entry]) -> list[str]:
    """Returns the ids of jobs with more than one dispatch."""
    return [job_id for job_id, count in Counter(each.message.job_id for each in entries).items() if count > 1]
