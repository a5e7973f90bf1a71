"""Finds what is wrong with a schedule: in itself, and for a target that lacks what it needs."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from holdfast.chaos.schedules.kinds import KINDS, Kind
from holdfast.chaos.schedules.schedule import HAIR, Place, Planned, Schedule, ScheduleError, Step, Subject
from holdfast.spec.capability import HOOK, Capability


@dataclass(frozen=True)
class Offer:
    """What a target has, and what it lets us do. Links between our clients and it (`ours`) need nothing of it."""

    subjects: frozenset[Subject]
    capabilities: frozenset[str]
    ours: frozenset[Subject] = frozenset()

    def takes(self, fault: Kind, subject: Subject) -> bool:
        return subject in self.subjects and subject.place in fault.on and not self.lacks(fault, subject)

    def lacks(self, fault: Kind, subject: Subject) -> frozenset[Capability]:
        """Return what the fault needs on this subject and the target does not offer."""
        return frozenset() if subject in self.ours else fault.needs - self.capabilities


def validate(schedule: Schedule, offer: Offer | None = None, known: Mapping[str, Kind] = KINDS) -> None:
    """Raise ScheduleError with all problems, one per line; without an offer, those that hold for every target."""
    if found := list(problems(schedule, offer, known)):
        raise ScheduleError("\n".join(found))


def problems(schedule: Schedule, offer: Offer | None = None, known: Mapping[str, Kind] = KINDS) -> Iterator[str]:
    yield from _twice(step.name for step in schedule.steps)
    for step in schedule.steps:
        for problem in _step_problems(step, offer, known):
            yield f"step {step.name}: {problem}"
    try:
        windows = schedule.planned()
    except ScheduleError as error:
        yield str(error)
        return
    yield from _late(schedule, windows)
    yield from _clashes(windows, known)


def _twice(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"step {name}: there are two of this name; give each its own"
        seen.add(name)


def _step_problems(step: Step, offer: Offer | None, known: Mapping[str, Kind]) -> Iterator[str]:
    fault = known.get(step.fault)
    if fault is None:
        yield f"fault: no fault {step.fault!r}{meant(step.fault, known)}"
        return
    if step.on.place not in fault.on:
        fitting = [name for name, other in known.items() if step.on.place in other.on]
        yield f"fault: {fault.name} can't be put on {step.on}; on a {step.on.place} there are: {', '.join(fitting)}"
    if fault.lasting and (step.lasts is None or not step.lasts.seconds):
        yield f'lasts: missing; {fault.name} lasts until it is healed, so write e.g. lasts = "5s"'
    if not fault.lasting and step.lasts is not None:
        yield f"lasts: {fault.name} happens once; leave it out"
    yield from _argument_problems(step, fault)
    if offer:
        yield from _offer_problems(step, fault, offer)


def _argument_problems(step: Step, fault: Kind) -> Iterator[str]:
    for name, value in step.arguments.items():
        if name not in fault.parameters:
            yield f"with {name}: {fault.name} has no such argument{meant(name, fault.parameters)}"
        elif problem := fault.parameters[name].problem(value):
            yield f"with {name}: {value} does not fit; {problem}"
    for name, parameter in fault.parameters.items():
        if parameter.default is None and name not in step.arguments:
            yield f"with {name}: missing; {fault.name} needs it ({parameter.takes})"


def _offer_problems(step: Step, fault: Kind, offer: Offer) -> Iterator[str]:
    if step.on not in offer.subjects:
        yield f"on: the target has no {step.on}; it has: {_listed(offer.subjects, step.on.place)}"
    for need in sorted(offer.lacks(fault, step.on)):
        yield f"fault: {fault.name} needs {need}, which this target does not offer; it would with {HOOK[need]}"


def _listed(subjects: Iterable[Subject], place: Place) -> str:
    """List the subjects of the same place, or all if there are none."""
    every = sorted(subjects)
    same = [subject for subject in every if subject.place is place]
    return ", ".join(str(subject) for subject in same or every) or "nothing to put a fault on"


def _late(schedule: Schedule, windows: Iterable[Planned]) -> Iterator[str]:
    limit = schedule.duration.seconds
    for window in windows:
        if window.end > limit + HAIR:
            yield (
                f"step {window.step.name}: lasts: it ends at {window.end:g} s, and the schedule at {limit:g} s; "
                "make the schedule longer or the fault shorter"
            )


def _clashes(windows: list[Planned], known: Mapping[str, Kind]) -> Iterator[str]:
    for one, other in combinations(sorted(windows, key=lambda window: window.start), 2):
        first, second = one.step, other.step
        if first.on == second.on and _slot(first, known) == _slot(second, known) and one.overlaps(other):
            yield (
                f"step {second.name}: at: {second.fault} would begin while {first.fault} of {first.name} is in force, "
                f'and on {second.on} they exclude each other; begin later, or write after = "{first.name}"'
            )


def _slot(step: Step, known: Mapping[str, Kind]) -> str:
    return known[step.fault].slot if step.fault in known else ""


def meant(word: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(names) or 'none'}"
