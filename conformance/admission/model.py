"""Queue and single-session rules as a small pure model: what a conforming target may answer, and its state afterwards.

The model does no I/O. `test_model` draws steps, does each to the target and to the model, and compares. A method that
models a call changes the state and returns the legal answers, or who is promoted.

The model knows settled states only: between two steps the target has time to promote. So the invariant after every step
is that an instance with a free slot has nobody waiting. Where conforming targets differ, the model allows both. An
entry whose character got a session elsewhere, or was suspended, may disappear at once or when promotion reaches it;
until then it is *passed over*: it may count in positions, and is never promoted. That is why positions and depths are
ranges. A character with such an entry is *in limbo*, and steps whose meaning depends on that entry are not drawn for
it. Neither are steps whose outcome every target may decide for itself (`undecided`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.conformance.admission.wire import Like, queued, refused, success

Legal = tuple[Like, ...]


@dataclass
class Room:
    """One instance: who is inside, and the line in order of arrival, passed-over entries included."""

    capacity: int
    draining: bool = False
    inside: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    passed_over: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> list[str]:
        """Those in line who can be promoted."""
        return [who for who in self.line if who not in self.passed_over]

    @property
    def free(self) -> bool:
        """Whether a newcomer is admitted directly."""
        return len(self.inside) < self.capacity and not self.line

    def places(self, who: str) -> range:
        """Returns the legal positions of a waiting character, without and with the passed-over entries before it."""
        before = self.line[: self.line.index(who)]
        return range(len([other for other in before if other not in self.passed_over]), len(before) + 1)

    def depths(self) -> range:
        """Returns the legal lengths of the line, without and with the passed-over entries."""
        return range(len(self.waiting), len(self.line) + 1)

    def settle(self) -> list[str]:
        """Fills free slots from the line, the earliest first; returns who was promoted."""
        promoted: list[str] = []
        while self.line and len(self.inside) < self.capacity:
            head = self.line.pop(0)
            if head in self.passed_over:
                self.passed_over.remove(head)
            else:
                promoted.append(head)
                self.inside.append(head)
        return promoted

    def remove(self, who: str) -> None:
        """Takes an entry out of the line, passed over or not."""
        self.line.remove(who)
        self.passed_over.discard(who)


@dataclass
class Model:
    """All instances and their characters."""

    rooms: dict[str, Room]
    suspended: set[str] = field(default_factory=set)

    def home(self, who: str) -> str | None:
        """Returns the instance where it is in session."""
        return next((where for where, room in self.rooms.items() if who in room.inside), None)

    def post(self, who: str) -> str | None:
        """Returns the instance where it waits."""
        return next((where for where, room in self.rooms.items() if who in room.waiting), None)

    def in_limbo(self, who: str) -> bool:
        """Whether a passed-over entry of it may still be in some line."""
        return any(who in room.passed_over for room in self.rooms.values())

    def undecided(self, who: str, where: str) -> bool:
        """Whether it would enter a second line, which a target may treat as a move, as an addition or as an error."""
        room = self.rooms[where]
        return self.home(who) is None and self.post(who) not in (None, where) and (room.draining or not room.free)

    def connect(self, who: str, where: str) -> Legal:
        """Connects; returns the legal answers."""
        room = self.rooms[where]
        if who in self.suspended:
            return (refused("CHARACTER_SUSPENDED"),)
        if self.home(who) is not None:
            return (refused("ALREADY_IN_SESSION"),)
        if who in room.waiting:
            return self._places(who, where)
        if room.draining:
            return (refused("DRAIN_MODE"),)
        if room.free:
            self._pass_over(who)
            room.inside.append(who)
            return (success(),)
        room.line.append(who)
        return self._places(who, where)

    def row_of(self, who: str, where: str) -> str:
        """Returns the row that says how this attempt is answered."""
        room = self.rooms[where]
        if who in self.suspended:
            return "AD-ADMIT-07"
        if self.home(who) is not None:
            return "AD-ADMIT-09"
        if who in room.waiting:
            return "AD-QUEUE-05"
        if room.draining:
            return "AD-DRAIN-01"
        return "AD-ADMIT-01" if room.free else "AD-POLL-01"

    def row_of_success(self, who: str, where: str) -> str:
        """Returns the row that is broken by a success where another answer was due, after `connect`."""
        line = self.rooms[where].line
        if who in line and line[0] != who:
            return "AD-QUEUE-06"
        return "AD-ADMIT-02" if who in line or self.home(who) is None else "AD-ADMIT-09"

    def row_of_poll(self, who: str, where: str, state: str) -> str:
        """Returns the row that is broken by a poll that shows something else than the model."""
        room = self.rooms[where]
        if who in room.waiting:
            return "AD-QUEUE-10" if state == "admitted" else "AD-QUEUE-01"
        if who in room.inside:
            return "AD-ADMIT-09"
        return "AD-QUEUE-12" if who in room.passed_over or state == "admitted" else "AD-POLL-01"

    def leave(self, who: str) -> list[str]:
        """Ends its session; returns who is promoted."""
        room = self.rooms[self.home(who) or ""]
        room.inside.remove(who)
        return room.settle()

    def race(self, leaver: str, who: str) -> tuple[Legal, list[str]]:
        """`leaver` leaves while `who` connects; returns the legal answers of either order, and who is promoted."""
        where = self.home(leaver) or ""
        room = self.rooms[where]
        in_line = who in room.waiting
        leave_second = self.connect(who, where)
        promoted = self.leave(leaver)
        leave_first: Legal = ()
        if who in room.inside:
            leave_first = (success(), refused("ALREADY_IN_SESSION")) if in_line else (success(),)
        elif who in room.waiting:
            leave_first = self._places(who, where)
        return (*leave_second, *leave_first), promoted

    def unqueue(self, who: str) -> None:
        self.rooms[self.post(who) or ""].remove(who)

    def resize(self, where: str, capacity: int) -> list[str]:
        """Changes the capacity; sessions inside stay even above it. Returns who is promoted."""
        self.rooms[where].capacity = capacity
        return self.rooms[where].settle()

    def suspend(self, who: str) -> None:
        """Suspends a character; its entry in a line is passed over."""
        self.suspended.add(who)
        self._pass_over(who)

    def limbo(self) -> Iterator[tuple[str, str]]:
        """Yields every passed-over entry as (character, instance)."""
        for where, room in self.rooms.items():
            yield from ((who, where) for who in sorted(room.passed_over))

    def _places(self, who: str, where: str) -> Legal:
        return tuple(queued(position=place) for place in self.rooms[where].places(who))

    def _pass_over(self, who: str) -> None:
        if post := self.post(who):
            self.rooms[post].passed_over.add(who)
