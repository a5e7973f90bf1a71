"""Queue and single-session rules as a small pure model: what a conforming target may answer, and how it stands after.

The model knows settled states only: between two steps the target has time to promote. Where conforming targets differ
it allows both: an entry whose character got a session elsewhere, or was suspended, may go at once or when promotion
reaches it. Until then it is *passed over*: it may count in positions, and is never promoted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.conformance.admission.wire import Like, queued, refused, success

Legal = tuple[Like, ...]


@dataclass
class Room:
    """One instance."""

    capacity: int
    draining: bool = False
    inside: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    passed_over: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> list[str]:
        return [who for who in self.line if who not in self.passed_over]

    @property
    def free(self) -> bool:
        return len(self.inside) < self.capacity and not self.line

    def places(self, who: str) -> range:
        """The positions that this one may be told, without and with the passed-over ones before it."""
        before = self.line[: self.line.index(who)]
        return range(len([other for other in before if other not in self.passed_over]), len(before) + 1)

    def depths(self) -> range:
        return range(len(self.waiting), len(self.line) + 1)

    def settle(self) -> list[str]:
        """Fill free slots from the line, the earliest first; who was promoted."""
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
        """Out of the line, passed over or not."""
        self.line.remove(who)
        self.passed_over.discard(who)


@dataclass
class Model:
    rooms: dict[str, Room]
    suspended: set[str] = field(default_factory=set)

    def home(self, who: str) -> str | None:
        """Where it is in session."""
        return next((where for where, room in self.rooms.items() if who in room.inside), None)

    def post(self, who: str) -> str | None:
        """Where it waits."""
        return next((where for where, room in self.rooms.items() if who in room.waiting), None)

    def in_limbo(self, who: str) -> bool:
        """A passed-over entry of it may still stand somewhere, so what its next steps mean is open."""
        return any(who in room.passed_over for room in self.rooms.values())

    def undecided(self, who: str, where: str) -> bool:
        """Whether a place in a second line moves a character, adds to the first or is refused, each target decides."""
        room = self.rooms[where]
        return self.home(who) is None and self.post(who) not in (None, where) and (room.draining or not room.free)

    def connect(self, who: str, where: str) -> Legal:
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

    def leave(self, who: str) -> list[str]:
        room = self.rooms[self.home(who) or ""]
        room.inside.remove(who)
        return room.settle()

    def race(self, leaver: str, who: str) -> tuple[Legal, list[str]]:
        """`leaver` leaves while `who` connects to the same instance: answers of either order, and who is promoted."""
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
        """Sessions inside stay, also above a lowered capacity."""
        self.rooms[where].capacity = capacity
        return self.rooms[where].settle()

    def suspend(self, who: str) -> None:
        self.suspended.add(who)
        self._pass_over(who)

    def limbo(self) -> Iterator[tuple[str, str]]:
        """Every passed-over entry, and where it may stand."""
        for where, room in self.rooms.items():
            yield from ((who, where) for who in sorted(room.passed_over))

    def _places(self, who: str, where: str) -> Legal:
        return tuple(queued(position=place) for place in self.rooms[where].places(who))

    def _pass_over(self, who: str) -> None:
        if post := self.post(who):
            self.rooms[post].passed_over.add(who)
