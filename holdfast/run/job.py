"""One check to run: what the scheduler is handed, and what it hands to `perform`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.check.verifies import CheckSpec
from holdfast.check.walk.order import Order
from holdfast.run.places import BUSY
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.timings import Timings
from holdfast.target.deployment import Wanted
from holdfast.target.descriptor import Target

# A check that plans to wait less than this is nearly all work.
BUSY_BELOW = 2.5


def planned_wait(spec: CheckSpec, timings: Timings, order: Order | None = None) -> float:
    """The seconds that a check plans to wait with these timings; `order` is what a walk was asked for."""
    return order.planned if order else timings.evaluate(spec.waits)


def runs_alone(spec: CheckSpec, target: Target) -> bool:
    """Whether the target has one deployment only and the check wants it for itself: alone, and after the others."""
    return spec.isolation != "shared" and not target.startable


@dataclass(frozen=True)
class Job:
    """`variant` names the mutant that the check runs against, empty for the target itself.

    Jobs of a lower `turn` begin first; those of one turn, which is the rule, the longest first.
    """

    check: str
    spec: CheckSpec
    target: Target
    catalogue: Catalogue
    timings: Timings
    params: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 1
    variant: str = ""
    seed: int = 0
    command: str = ""
    turn: int = 0
    walk_order: Order | None = None
    # A second target that takes the same walks.
    against: Target | None = None

    @property
    def on_the_other(self) -> "Job":
        """The same check on the second target, or on the same one if there is none."""
        other = self.against or self.target
        return replace(self, target=other, timings=other.timings(self.catalogue), variant="", against=None)

    @property
    def planned(self) -> float:
        """The seconds that the check plans to wait, at the scale of this run."""
        return planned_wait(self.spec, self.timings, self.walk_order)

    @property
    def urgency(self) -> float:
        """How urgently it wants its place: the longest first, but never before one of a lower turn."""
        return -self.turn if self.turn else self.planned

    @property
    def deadline(self) -> float:
        """Past this a check hangs: one and a half times what it plans to wait, and ten seconds to work.

        To that comes one silence for as long as the target states that it may keep silent.
        """
        return 1.5 * self.planned + 10 + max(self.target.windows.values(), default=0.0)

    @property
    def weight(self) -> int:
        """How many places of the lane for work the check takes; 0 for one that mostly waits."""
        return self.spec.weight or (BUSY if self.spec.busy or self.planned < BUSY_BELOW else 0)

    @property
    def needs_all(self) -> bool:
        return runs_alone(self.spec, self.target)

    @property
    def wanted(self) -> Wanted:
        needs = self.spec.needs(self.catalogue)
        spec = self.spec
        return Wanted(
            spec.isolation, needs, spec.settings, spec.nodes, self.variant, tap=spec.taps, started=spec.started
        )

    @property
    def transcribed(self) -> bool:
        """Whether a pass keeps its transcript: of twenty repeats one tells as much as all, of a mutant none is read."""
        return self.repeat == 1 and not self.variant
