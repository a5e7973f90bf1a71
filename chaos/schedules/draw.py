"""Schedules drawn from a seed: same seed and same inputs, same schedule, on every version of Python.

Of random.Random only `random()` is used, seeded with a whole number: that sequence is the one thing the library
promises to keep. Choices and figures are made from it here, by multiplying and rounding down, on a grid of
milliseconds.

How room is kept: for each subject and kind there are gaps, stretches of time that are free. A fault is put into a gap
that is long enough; then its time, with a rest before and after it, is taken out of every gap of the same subject and
slot, since faults of one slot exclude each other there. So a drawn schedule never overlaps what must not overlap, and
no draw is thrown away and repeated. If no gap is long enough for the next fault, that is an error, not a shorter
schedule.

A change in the order of draws changes every recorded seed; a test holds one schedule fixed.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.chaos.schedules.kinds import KINDS, Kind, Parameter, Takes
from holdfast.chaos.schedules.schedule import Argument, Schedule, ScheduleError, Step, Subject, Time
from holdfast.chaos.schedules.validate import meant
from holdfast.spec.catalogue import TimingKind

T = TypeVar("T")


@dataclass(frozen=True)
class Gap:
    """A stretch of time, in milliseconds, in which this fault may be put on this subject."""

    subject: Subject
    kind: Kind
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class _Dice:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, number: int) -> int:
        return int(self._random.random() * number)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def one_of(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]


def draw(
    seed: int,
    number: int,
    subjects: Iterable[Subject],
    kinds: Iterable[str],
    duration: float,
    *,
    shortest: float = 1.0,
    longest: float | None = None,
    rest: float = 1.0,
    calm: float = 0.0,
    known: Mapping[str, Kind] = KINDS,
) -> Schedule:
    """Draw `number` faults within `duration` seconds, each healed before the end.

    A fault lasts from `shortest` to `longest` seconds (None: a third of the duration); between two that exclude each
    other on one subject there are at least `rest` seconds; the last `calm` seconds are free of faults. The order in
    which subjects and kinds are given does not matter. Raises ScheduleError when they do not fit.
    """
    dice, end = _Dice(seed), int((duration - calm) * 1000)  # rounded down: healed before the end, not at it
    least, most = _ms(shortest), _ms(duration / 3 if longest is None else longest)
    if not 0 < least <= most:
        raise ScheduleError(
            f"faults of {shortest:g} s to {most / 1000:g} s: make shortest above 0 and not above longest"
        )
    gaps = [Gap(subject, kind, 0, end) for subject, kind in _pairs(subjects, kinds, known)]
    steps = []
    for count in range(number):
        fitting = [gap for gap in gaps if gap.length >= (least if gap.kind.lasting else 1)]
        if not fitting:
            raise ScheduleError(_no_room(number, count, duration))
        gap = _pick(dice, fitting)
        lasts = dice.between(least, min(most, gap.length)) if gap.kind.lasting else 0
        start = gap.start + dice.below(gap.length - lasts + 1)
        steps.append((start, count, gap, lasts, _arguments(dice, gap.kind)))
        gaps = [left for one in gaps for left in _without(one, gap, start - _ms(rest), start + lasts + _ms(rest))]
    return _schedule(seed, duration, steps)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _pairs(subjects: Iterable[Subject], kinds: Iterable[str], known: Mapping[str, Kind]) -> list[tuple[Subject, Kind]]:
    names, there = sorted(set(kinds)), sorted(set(subjects))
    for name in names:
        if name not in known:
            raise ScheduleError(f"no fault {name!r}{meant(name, known)}")
    pairs = [(subject, known[name]) for name in names for subject in there if subject.place in known[name].on]
    if not pairs:
        places = ", ".join(str(subject) for subject in there) or "no subject"
        raise ScheduleError(f"none of {', '.join(names) or 'no fault'} can be put on {places}; name others")
    return pairs


def _pick(dice: _Dice, gaps: Sequence[Gap]) -> Gap:
    """Pick the fault first, so that one with many subjects is not drawn more often; then subject and gap."""
    fault = dice.one_of(list(dict.fromkeys(gap.kind.name for gap in gaps)))
    of_fault = [gap for gap in gaps if gap.kind.name == fault]
    subject = dice.one_of(list(dict.fromkeys(gap.subject for gap in of_fault)))
    return dice.one_of([gap for gap in of_fault if gap.subject == subject])


def _without(gap: Gap, taken: Gap, start: int, end: int) -> list[Gap]:
    """Return what is left of a gap when another fault takes its slot from `start` to `end`."""
    if gap.subject != taken.subject or gap.kind.slot != taken.kind.slot:
        return [gap]
    before = Gap(gap.subject, gap.kind, gap.start, min(gap.end, start))
    after = Gap(gap.subject, gap.kind, max(gap.start, end), gap.end)
    return [left for left in (before, after) if left.length > 0]


def _arguments(dice: _Dice, kind: Kind) -> dict[str, Argument]:
    return {name: _argument(dice, parameter) for name, parameter in sorted(kind.parameters.items())}


def _argument(dice: _Dice, parameter: Parameter) -> Argument:
    if parameter.takes is Takes.WORD:
        return dice.one_of(parameter.words)
    if not parameter.high and parameter.default is not None:
        return parameter.default
    thousandths = dice.between(_ms(parameter.low), _ms(parameter.high))
    return Time(thousandths / 1000, parameter.kind) if parameter.takes is Takes.TIME else thousandths / 1000


def _schedule(seed: int, duration: float, drawn: Iterable[tuple[int, int, Gap, int, dict[str, Argument]]]) -> Schedule:
    """Make the schedule, with steps in the order of time and named by their number."""
    steps = [
        Step(
            name=f"{number}-{gap.kind.name}",
            on=gap.subject,
            fault=gap.kind.name,
            arguments=arguments,
            at=Time(start / 1000),
            lasts=Time(lasts / 1000) if gap.kind.lasting else None,
        )
        for number, (start, _, gap, lasts, arguments) in enumerate(sorted(drawn, key=lambda one: one[:2]), 1)
    ]
    return Schedule(f"drawn-{seed}", Time(duration, TimingKind.STIMULUS), tuple(steps), seed)


def _no_room(number: int, placed: int, duration: float) -> str:
    return (
        f"only {placed} of {number} faults find room in {duration:g} s; "
        "make the schedule longer, the faults shorter or fewer, or name more subjects"
    )
