"""How long a run will take: the checks that overlap, then pauses, then the checks that run alone.

    | overlapped: the longest, or the sum ÷ overlap | settling | alone: one after the other |

A target that we may not start has one deployment. Checks that want it for themselves run when all others have ended and
the target has forgotten them; that wait is as long as the catalogue says (`settle`), and nothing runs meanwhile.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.check.verifies import CheckSpec
from holdfast.check.walk.order import Order
from holdfast.run.job import planned_wait, runs_alone
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.timings import Timings
from holdfast.target.descriptor import Target


@dataclass(frozen=True)
class Pace:
    """What the length of a run depends on, besides its checks."""

    target: Target
    catalogue: Catalogue
    timings: Timings
    overlap: int
    repeat: int = 1
    walk_order: Order | None = None

    def planned(self, spec: CheckSpec) -> float:
        """The seconds that one run of the check plans to wait."""
        return planned_wait(spec, self.timings, self.walk_order if spec.walks else None)

    def alone(self, specs: Iterable[CheckSpec]) -> list[CheckSpec]:
        return [spec for spec in specs if runs_alone(spec, self.target)]

    def settling(self, specs: Iterable[CheckSpec]) -> float:
        """The seconds of standing still between what overlaps and what runs alone; 0 without both."""
        alone = {runs_alone(spec, self.target) for spec in specs}
        return self.timings.evaluate(self.catalogue.settle) if len(alone) > 1 else 0.0

    def total(self, specs: Iterable[CheckSpec]) -> float:
        """What all repeats of these checks plan to wait, one after the other."""
        return self.repeat * sum(map(self.planned, specs))

    def wall(self, specs: Iterable[CheckSpec]) -> float:
        specs = list(specs)
        alone = self.alone(specs)
        beside = [spec for spec in specs if not runs_alone(spec, self.target)]
        overlapped = max(max(map(self.planned, beside), default=0.0), self.total(beside) / self.overlap)
        return overlapped + self.settling(specs) + self.total(alone)
