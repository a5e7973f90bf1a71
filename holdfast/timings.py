"""The spec's durations and limits as this run uses them: overridden by the target, scaled, floored.

Wire seconds are always real seconds. The scale multiplies what the spec or the suite chose; it never touches
latencies, rates or counts. Tolerances keep a floor, because jitter does not shrink with the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.catalogue import Catalogue, Timing, TimingKind
from holdfast.formula import evaluate

TOLERANCE_FLOOR = 0.25
_UNSCALED = frozenset({TimingKind.LATENCY})
# A miss of one of these alone is a warn: they make wording measurable that the spec left open.
OURS_TO_WARN = frozenset({TimingKind.BOUND, TimingKind.LATENCY})


class UnknownTimingError(AttributeError):
    """A check names a duration or limit that the catalogue does not have."""


@dataclass(frozen=True)
class Scaled:
    """One timing as used in this run."""

    timing: Timing
    spec_seconds: float
    seconds: float
    source: str

    @property
    def kind(self) -> TimingKind:
        return self.timing.kind

    @property
    def floor(self) -> float:
        return TOLERANCE_FLOOR if self.kind is TimingKind.TOLERANCE else 0.0


class Timings:
    """`timings.grace` is the grace of this run in real seconds; `count` and `share` give the limits."""

    def __init__(
        self,
        catalogue: Catalogue,
        scale: float = 1.0,
        overrides: Mapping[str, float] | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        self.scale = scale
        self._limits = {**catalogue.limits, **(limits or {})}
        self._overrides = dict(overrides or {})
        self._catalogue = catalogue
        self._scaled = {name: self._scale(timing) for name, timing in catalogue.timings.items()}

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.of(name).seconds

    def of(self, name: str) -> Scaled:
        try:
            return self._scaled[name]
        except KeyError:
            raise UnknownTimingError(
                f"{name!r} is no timing of {self._catalogue.key}; the catalogue has: {', '.join(sorted(self._scaled))}"
            ) from None

    def count(self, name: str) -> int:
        return int(self.share(name))

    def share(self, name: str) -> float:
        try:
            return self._limits[name]
        except KeyError:
            known = ", ".join(sorted(self._limits))
            raise UnknownTimingError(f"{name!r} is no limit of {self._catalogue.key}; it has: {known}") from None

    def evaluate(self, formula: str) -> float:
        return evaluate(formula, lambda name: self._limits.get(name) or self.of(name).seconds)

    def all(self) -> Mapping[str, Scaled]:
        return self._scaled

    def _scale(self, timing: Timing) -> Scaled:
        spec = self._spec_seconds(timing.name)
        seconds = spec if timing.kind in _UNSCALED else spec * self.scale
        if timing.kind is TimingKind.TOLERANCE:
            seconds = max(seconds, TOLERANCE_FLOOR)
        return Scaled(timing, spec, seconds, "target" if timing.name in self._overrides else "catalogue")

    def _spec_seconds(self, name: str) -> float:
        if name in self._overrides:
            return self._overrides[name]
        if name in self._limits:
            return self._limits[name]
        timing = self._catalogue.timings[name]
        return evaluate(timing.formula, self._spec_seconds) if timing.formula else timing.seconds
