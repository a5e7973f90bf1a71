"""A schedule of faults: when, on what, which fault, for how long.

Times are the spec's seconds. Most are stimuli, which shrink with the time scale of a run; those marked real (delays set
against a network, waits for a process to start) do not. `Schedule.scaled` gives the schedule of one run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Self

from holdfast.spec.catalogue import CatalogueError, TimingKind, seconds


class ScheduleError(ValueError):
    """The schedule can't be used; the text names the place and the remedy, one problem a line."""


@dataclass(frozen=True, order=True)
class Time:
    """A figure and its kind: a stimulus scales with the run, a latency never does."""

    seconds: float
    kind: TimingKind = TimingKind.STIMULUS

    def __post_init__(self) -> None:
        if self.kind not in (TimingKind.STIMULUS, TimingKind.LATENCY):
            raise ScheduleError(f"a time of kind {self.kind}; in a schedule it is stimulus or latency")
        if not 0 <= self.seconds < float("inf"):
            raise ScheduleError(f"a time of {self.seconds} s; it is a number, not below zero")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read '500ms', '2s' or '5m'; with ' real' behind it, the time does not scale."""
        figure, space, word = text.partition(" ")
        if space and word != "real":
            raise ScheduleError(
                f"{text!r} is no time; write it like 500ms, 2s, 5m, or with the word real: '300ms real'"
            )
        try:
            return cls(seconds(figure), TimingKind.LATENCY if word else TimingKind.STIMULUS)
        except CatalogueError as error:
            raise ScheduleError(str(error)) from None

    def scaled(self, scale: float) -> Self:
        return replace(self, seconds=self.seconds * scale) if self.kind is TimingKind.STIMULUS else self

    def __str__(self) -> str:
        """Write it as `parse` reads it, without rounding."""
        figure = format(Decimal(repr(float(self.seconds))), "f").removesuffix(".0")
        return f"{figure}s real" if self.kind is TimingKind.LATENCY else f"{figure}s"


Argument = Time | int | float | str | bool

NOW = Time(0.0)
# Tolerance for sums of decimal fractions, which are not exact.
HAIR = 1e-9


class Place(StrEnum):
    """What a fault can be put on."""

    LINK = "link"
    UDP = "udp"
    NODE = "node"
    STORE = "store"


@dataclass(frozen=True, order=True)
class Subject:
    place: Place
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        place, _, name = text.partition(":")
        if place not in set(Place) or not name:
            raise ScheduleError(f"{text!r} names nothing; write {', '.join(f'{one}:NAME' for one in Place)}")
        return cls(Place(place), name)

    def __str__(self) -> str:
        return f"{self.place}:{self.name}"


class Since(StrEnum):
    """The moment of another step from which a step counts."""

    IN_FORCE = "in-force"
    HEALED = "healed"


@dataclass(frozen=True)
class Step:
    """One fault on one subject. Without `lasts` it is over at once, and there is nothing to heal."""

    name: str
    on: Subject
    fault: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    at: Time = NOW
    lasts: Time | None = None
    after: str | None = None
    since: Since = Since.HEALED

    def scaled(self, scale: float) -> Self:
        arguments = {
            name: value.scaled(scale) if isinstance(value, Time) else value for name, value in self.arguments.items()
        }
        lasts = self.lasts.scaled(scale) if self.lasts else None
        return replace(self, arguments=arguments, at=self.at.scaled(scale), lasts=lasts)

    def when(self) -> str:
        start = f"at {self.at}" if self.after is None else f"{self.at} after {self.after} is {self.since}"
        return f"{start}, for {self.lasts}" if self.lasts else f"{start}, once"

    def options(self) -> dict[str, float | str | bool]:
        """Return the arguments as plain figures; times of a scaled step are real seconds."""
        return {name: value.seconds if isinstance(value, Time) else value for name, value in self.arguments.items()}

    def what(self) -> str:
        return " ".join([self.fault, *(f"{name}={value}" for name, value in sorted(self.arguments.items()))])


@dataclass(frozen=True)
class Planned:
    """When a step is planned, in seconds from the start of the schedule."""

    step: Step
    start: float
    end: float

    def overlaps(self, other: "Planned") -> bool:
        """Return whether they overlap; two that only touch do not."""
        return self.start + HAIR < other.end and other.start + HAIR < self.end


@dataclass(frozen=True)
class Schedule:
    """`seed` is what it was drawn from; None if it was written by hand."""

    name: str
    duration: Time
    steps: tuple[Step, ...]
    seed: int | None = None

    def scaled(self, scale: float) -> Self:
        """Return the schedule in the time of a run, from one in the spec's time."""
        return replace(
            self, duration=self.duration.scaled(scale), steps=tuple(step.scaled(scale) for step in self.steps)
        )

    def planned(self) -> list[Planned]:
        """Return when each step is planned, if every fault is in force as soon as it is asked for."""
        steps, found = {step.name: step for step in self.steps}, dict[str, Planned]()
        return [_planned(step, steps, found, ()) for step in self.steps]

    def describe(self) -> str:
        """Describe it for people, one line per step."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        seed = "" if self.seed is None else f", seed {self.seed}"
        yield f"{self.name}: {len(self.steps)} {'fault' if len(self.steps) == 1 else 'faults'} in {self.duration}{seed}"
        width = max((len(step.name) for step in self.steps), default=0)
        where = max((len(str(step.on)) for step in self.steps), default=0)
        for step in self.steps:
            yield f"  {step.name:<{width}}  {step.on!s:<{where}}  {step.what()}, {step.when()}"


def _planned(step: Step, steps: Mapping[str, Step], found: dict[str, Planned], path: tuple[str, ...]) -> Planned:
    if step.name in path:
        raise ScheduleError(f"step {step.name}: after: waits for itself ({' → '.join((*path, step.name))})")
    if step.name not in found:
        start = step.at.seconds
        if step.after is not None:
            if step.after not in steps:
                raise ScheduleError(f"step {step.name}: after: no step {step.after!r}; there are: {', '.join(steps)}")
            other = _planned(steps[step.after], steps, found, (*path, step.name))
            start += other.start if step.since is Since.IN_FORCE else other.end
        found[step.name] = Planned(step, start, start + (step.lasts.seconds if step.lasts else 0.0))
    return found[step.name]
