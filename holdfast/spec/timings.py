"""The spec's durations and limits as this run uses them: overridden by the target, scaled, floored.

Seconds on the wire are always real seconds: a target that runs five times faster says so in its own answers. The scale
multiplies durations that the spec or the suite chose; it never touches latencies, rates or counts, which measure the
machine and not the protocol. Tolerances keep a floor, because jitter does not shrink with the clock.

A value is found in this order: an override of the target's descriptor, the formula of the catalogue, its table. A
formula is computed from its terms, overrides included, so that a target with another grace also gets another sum of
grace and slack; each term scales by its own kind before it is added, because a latency inside a sum does not get
shorter. Limits are plain numbers and are never scaled; a descriptor may give others for runs below the spec's own time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.spec.catalogue import Catalogue, Timing, TimingKind
from holdfast.spec.formula import evaluate

TOLERANCE_FLOOR = 0.25
_UNSCALED = frozenset({TimingKind.LATENCY, TimingKind.FIXED})
# A miss of one of these only warns: the suite chose the figure where the spec gives none.
OURS_TO_WARN = frozenset({TimingKind.BOUND, TimingKind.LATENCY})


class UnknownTimingError(AttributeError):
    """Raised where a check names a duration or limit that the catalogue does not have."""


@dataclass(frozen=True)
class Scaled:
    """One timing as used in this run: `spec_seconds` before the scale, `seconds` after it."""

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
        self._given_limits = dict(limits or {})
        self._limits = {**catalogue.limits, **self._given_limits}
        self._overrides = dict(overrides or {})
        self._catalogue = catalogue
        self._scaled = {name: self._scale(timing) for name, timing in catalogue.timings.items()}

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.of(name).seconds

    def of(self, name: str) -> Scaled:
        """Returns the timing of this name. Raises UnknownTimingError."""
        try:
            return self._scaled[name]
        except KeyError:
            raise UnknownTimingError(
                f"{name!r} is not a timing of {self._catalogue.key}; it has: {', '.join(sorted(self._scaled))}"
            ) from None

    def count(self, name: str) -> int:
        """Returns a limit that counts something."""
        return int(self.share(name))

    def share(self, name: str) -> float:
        """Returns a limit that may be a fraction."""
        if name not in self._limits:
            known = ", ".join(sorted(self._limits))
            raise UnknownTimingError(f"{name!r} is not a limit of {self._catalogue.key}; it has: {known}")
        return self._limit(name)

    def evaluate(self, formula: str) -> float:
        """Returns the real seconds of a formula, such as the planned waiting of a check."""
        return evaluate(formula, lambda name: self._limit(name) if name in self._limits else self.of(name).seconds)

    def all(self) -> Mapping[str, Scaled]:
        return self._scaled

    def limits(self) -> Mapping[str, float]:
        """Returns every limit by its name."""
        return {name: self._limit(name) for name in self._limits}

    def never(self, name: str) -> float:
        """After these seconds what this timing waits for does not happen any more: the one rule for all checks.

        A give-up says so itself; of a bound or latency, which the suite chose, it is twice the value.
        """
        scaled = self.of(name)
        if scaled.kind is TimingKind.GIVE_UP:
            return scaled.seconds
        if scaled.kind in OURS_TO_WARN:
            return 2 * scaled.seconds
        raise UnknownTimingError(f"{name!r} is a {scaled.kind}; only a give_up, a bound or a latency says when to stop")

    def _scale(self, timing: Timing) -> Scaled:
        source = "target" if timing.name in self._overrides else "catalogue"
        return Scaled(timing, self._value(timing.name, 1.0), self._value(timing.name, self.scale), source)

    def _value(self, name: str, scale: float) -> float:
        """Seconds of a timing, or a limit, at this scale. A sum scales term by term, each term by its own kind."""
        if name in self._limits:
            return self._limit(name)
        timing = self._catalogue.timings[name]
        if name in self._overrides or timing.formula is None:
            spec = self._overrides.get(name, timing.seconds)
            seconds = spec if timing.kind in _UNSCALED else spec * scale
        else:
            seconds = evaluate(timing.formula, lambda term: self._value(term, scale))
        return max(seconds, TOLERANCE_FLOOR) if timing.kind is TimingKind.TOLERANCE and scale < 1 else seconds

    def _limit(self, name: str) -> float:
        formula = None if name in self._given_limits else self._catalogue.limit_formulas.get(name)
        return evaluate(formula, lambda term: self._value(term, 1.0)) if formula else self._limits[name]
