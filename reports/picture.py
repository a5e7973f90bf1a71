"""Computes the coordinates of the small pictures; the template draws them."""

from dataclasses import dataclass

from holdfast.check.timeline import Judgement
from holdfast.reports.text import Json
from holdfast.spec.timings import OURS_TO_WARN
from holdfast.spec.verdict import Verdict

WIDTH = 420.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """A budget with its tolerance and what was observed, in drawing units from 0 to `WIDTH`."""

    budget: float
    tolerance_from: float
    tolerance_to: float
    observed_from: float
    observed_to: float
    open_ended: bool
    seen: bool

    @property
    def observed_width(self) -> float:
        """At least 3 units, to be seen at all: most intervals are a few milliseconds."""
        return max(self.observed_to - self.observed_from, 3.0)


def timeline(timing: Json) -> Timeline | None:
    """Returns the picture of one timing; None without a budget to draw it against."""
    budget = timing.get("budget_s")
    if not budget or budget < 0:
        return None
    tolerance = timing.get("tolerance_s") or 0.0
    low, high = (timing.get("observed_s") or [None, None])[:2]
    ends = [value for value in (low, high) if value is not None]
    scale = WIDTH / (1.15 * max([budget + tolerance, *ends]))
    first = max(min(ends, default=0.0), 0.0) if low is not None else 0.0
    last = high if high is not None else WIDTH / scale
    return Timeline(
        budget=round(budget * scale, 1),
        tolerance_from=round(max(budget - tolerance, 0.0) * scale, 1),
        tolerance_to=round((budget + tolerance) * scale, 1),
        observed_from=round(first * scale, 1),
        observed_to=round(last * scale, 1),
        open_ended=high is None,
        seen=bool(ends),
    )


LANE = 14.0


@dataclass(frozen=True, slots=True)
class Shade:
    """One fault in the story of an attempt: from when to when, in drawing units, and in which lane."""

    left: float
    width: float
    top: float
    fault: Json


@dataclass(frozen=True, slots=True)
class Story:
    """The course of an attempt: faults as shaded windows, each in a lane of its own, steps as ticks on the axis."""

    shades: list[Shade]
    ticks: list[float]
    height: float


def story(attempt: Json) -> Story | None:
    """Returns the picture of an attempt under faults; None if there was no fault."""
    faults = attempt.get("faults") or []
    if not faults:
        return None
    end = max([float(attempt["duration_s"]), *(float(fault["healed_s"]) for fault in faults), 0.001])
    scale = WIDTH / end
    shades = [
        Shade(
            left=round(fault["in_force_s"] * scale, 1),
            width=round(max((fault["healed_s"] - fault["in_force_s"]) * scale, 2.0), 1),
            top=lane * LANE + 2,
            fault=fault,
        )
        for lane, fault in enumerate(faults)
    ]
    ticks = [round(step["start_ms"] / 1000 * scale, 1) for step in attempt["steps"]]
    return Story(shades, ticks, len(faults) * LANE + 16)


def look(timing: Json) -> Verdict:
    """Returns the verdict that the judgement of a timing leads to; its colour is the timing's colour."""
    match timing["verdict"]:
        case Judgement.HOLDS | None:
            return Verdict.PASS
        case Judgement.MISSED:
            return Verdict.WARN if timing["kind"] in OURS_TO_WARN else Verdict.FAIL
        case _:
            return Verdict.INCONCLUSIVE


def meter(margin: float | None) -> int:
    """Returns the room left as a percentage for a bar; 0 for a timing past its budget."""
    return round(100 * min(max(margin or 0.0, 0.0), 1.0))
