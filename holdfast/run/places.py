"""Places on the machine, which all runners of one command share: who has how many, and who is next.

Checks of several specs run at the same time, each spec in a runner process of its own. Two kinds of work must not
happen everywhere at once, because they would take the processor from checks that are being timed: to start a deployment
(lane `start`), and to work rather than wait (lane `work`). Each lane has a fixed number of places. Whoever wants to do
such work asks for as many places as it weighs, waits until it has them all, and gives them back.

The rules, all of them here and free of I/O:

- In each lane the most urgent is next, whichever runner asks for it: the check that plans to take longest, because the
  whole command would wait for it at the end. Of equals the first to ask is next. Nobody overtakes the one who is next,
  also if it waits for many places and few are free: else it would wait until all others are done.
- Whoever asks for more places than the lane has gets the whole lane.
- Places belong to an owner, the connection that asked for them. When the owner is gone, all of its places are free
  again and its questions are forgotten.

`holdfast.run.tokens` has the two ways to ask: inside one runner that is alone, and over a socket in one of several.
"""

import bisect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Lane = Literal["start", "work"]

# More starts at once only queue for the two cores that most machines in CI have.
STARTS_AT_ONCE = 2
# A check that mostly works takes BUSY of the places.
BUSY, WORK_PLACES = 2, 6
LIMITS: Mapping[Lane, int] = {"start": STARTS_AT_ONCE, "work": WORK_PLACES}


class Asked(NamedTuple):
    """A question: `number` is the owner's own, and names the places until they are given back."""

    owner: int
    number: int


class _Waiting(NamedTuple):
    """Sorts by urgency, then by who was first."""

    after: float
    turn: int
    asked: Asked
    places: int


@dataclass
class _Line:
    limit: int
    taken: int = 0
    waiting: list[_Waiting] = field(default_factory=list)

    def admit(self) -> list[_Waiting]:
        admitted = []
        while self.waiting and self.taken + self.waiting[0].places <= self.limit:
            admitted.append(self.waiting.pop(0))
            self.taken += admitted[-1].places
        return admitted


class Places:
    """The books. Each method returns the questions that are answered by it, in order."""

    def __init__(self, limits: Mapping[Lane, int] = LIMITS) -> None:
        self._lines: dict[Lane, _Line] = {lane: _Line(limit) for lane, limit in limits.items()}
        self._held: dict[Asked, tuple[Lane, int]] = {}
        self._turns = itertools.count()

    def ask(self, asked: Asked, lane: Lane, places: int, urgency: float = 0.0) -> list[Asked]:
        line = self._lines[lane]
        bisect.insort(line.waiting, _Waiting(-urgency, next(self._turns), asked, min(places, line.limit)))
        return self._admit(lane)

    def give_back(self, asked: Asked) -> list[Asked]:
        """Take back what was given for this question, or withdraw the question if it still waits."""
        if held := self._held.pop(asked, None):
            lane, places = held
            self._lines[lane].taken -= places
        for line in self._lines.values():
            line.waiting = [one for one in line.waiting if one.asked != asked]
        return self._admit(*self._lines)

    def forget(self, owner: int) -> list[Asked]:
        """Take back everything from an owner that is gone."""
        waiting = [one.asked for line in self._lines.values() for one in line.waiting]
        theirs = [asked for asked in (*self._held, *waiting) if asked.owner == owner]
        answered = [each for asked in theirs for each in self.give_back(asked)]
        return [each for each in answered if each.owner != owner]

    def taken(self, lane: Lane) -> int:
        return self._lines[lane].taken

    def _admit(self, *lanes: Lane) -> list[Asked]:
        answered = []
        for lane in lanes:
            for one in self._lines[lane].admit():
                self._held[one.asked] = lane, one.places
                answered.append(one.asked)
        return answered
