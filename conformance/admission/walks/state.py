"""What a target holds, as the spec has it: sessions, waiting lines, tokens, offers, failures and locks.

A state is a value: every change makes another one. Times are intervals on our clock, because what happens inside a
target is known only from outside; [lo, hi] is when it surely happened.

Two things are derived and not stored. An entry in a line is *void* while its character has a session or is suspended: a
promotion passes it over, and a target may drop it at any time (§10, §11). A slot is *free* while fewer sessions than
the capacity are inside; sessions in grace are inside (§8).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.conformance.shared.walks import Span

# Two users with two characters each, so that tokens can be tried with a sibling, and one with a single character.
OWNERS: Mapping[str, str] = {"a": "u1", "b": "u1", "c": "u2", "d": "u2", "e": "u3"}
PEOPLE, ROOMS = tuple(OWNERS), ("i1", "i2")
CAPACITIES: Mapping[str, int] = {"i1": 1, "i2": 2}
NOWHERE = "nowhere"

NEW, OPEN, SILENT, GRACE = "new", "open", "silent", "grace"


@dataclass(frozen=True)
class Session:
    """`mode`: no socket yet, an open one, one that says nothing, or in grace. `since` is its last sign of life.

    `id` and `token` are empty until the client was told. `dead` means that the token's life is over. `shown` says
    whether a poll hands the session out: it does after a promotion, until the first socket attaches.
    """

    where: str
    id: str
    token: str
    mode: str
    since: Span
    dead: bool = False
    shown: bool = False


@dataclass(frozen=True)
class Room:
    """An instance. `since`: from when on a slot was free for somebody in line."""

    capacity: int
    draining: bool = False
    closed: bool = False
    line: tuple[str, ...] = ()
    since: Span | None = None


@dataclass(frozen=True)
class Offer:
    """An offer to replace one session, which only that character's owner may confirm."""

    token: str
    who: str
    session: str
    since: Span


@dataclass(frozen=True)
class Ending:
    """A socket that was superseded `at` a moment; the server has to close it by `latest`."""

    who: str
    at: float
    latest: float
    rows: tuple[str, ...]


class Expected(NamedTuple):
    """A line that the log has by `latest`; one that is not `due` may stay out.

    A counter that has to rise is expected in the same way, under its name; it is about nobody.
    """

    event: str
    who: str
    reason: str
    latest: float
    due: bool


@dataclass(frozen=True)
class State:
    sessions: tuple[tuple[str, Session], ...] = ()
    rooms: tuple[tuple[str, Room], ...] = tuple((name, Room(CAPACITIES[name])) for name in ROOMS)
    suspended: frozenset[str] = frozenset()
    offers: frozenset[Offer] = frozenset()
    failures: tuple[tuple[str, tuple[Span, ...]], ...] = ()
    locks: tuple[tuple[str, Span], ...] = ()
    endings: frozenset[Ending] = frozenset()
    expected: tuple[Expected, ...] = ()
    down: frozenset[str] = frozenset()
    # Until when a node that died, or began anew, may have taken along what it had counted.
    uncounted: float = 0.0
    # The deepest line that the gauge of the peak has to show.
    peak: int = 0

    def session(self, who: str) -> Session | None:
        return next((session for name, session in self.sessions if name == who), None)

    def room(self, where: str) -> Room:
        return next(room for name, room in self.rooms if name == where)

    def inside(self, where: str) -> int:
        return sum(session.where == where for _, session in self.sessions)

    def void(self, who: str) -> bool:
        """Whether a promotion has to pass over an entry of this character."""
        return who in self.suspended or self.session(who) is not None

    def waits_at(self, who: str) -> str:
        """Returns the instance in whose line it stands; empty if it stands in none."""
        return next((name for name, room in self.rooms if who in room.line), "")

    def next_of(self, where: str) -> str:
        """Returns who is promoted next; empty if nobody can be."""
        return next((who for who in self.room(where).line if not self.void(who)), "")

    def free(self, where: str) -> bool:
        return self.inside(where) < self.room(where).capacity

    def failed(self, user: str) -> tuple[Span, ...]:
        return next((spans for name, spans in self.failures if name == user), ())

    def locked(self, user: str) -> Span | None:
        return next((since for name, since in self.locks if name == user), None)

    def with_session(self, who: str, session: Session | None) -> "State":
        others = [each for each in self.sessions if each[0] != who]
        return replace(self, sessions=tuple(sorted([*others, *([(who, session)] if session else [])])))

    def named(self, who: str, session: Session) -> "State":
        """Returns the state with the id of its session known; offers may have been made before it was told."""
        offers = frozenset(
            replace(each, session=session.id) if (each.who, each.session) == (who, "") else each for each in self.offers
        )
        return replace(self, offers=offers).with_session(who, session)

    def with_room(self, where: str, room: Room) -> "State":
        return replace(self, rooms=tuple((name, room if name == where else old) for name, old in self.rooms))

    def with_failures(self, user: str, spans: Iterable[Span]) -> "State":
        others = [each for each in self.failures if each[0] != user]
        kept = tuple(sorted(spans))
        return replace(self, failures=tuple(sorted([*others, *([(user, kept)] if kept else [])])))

    def with_lock(self, user: str, since: Span | None) -> "State":
        others = [each for each in self.locks if each[0] != user]
        return replace(self, locks=tuple(sorted([*others, *([(user, since)] if since else [])])))

    def without_offers(self, who: str, *, all_but: str = "") -> "State":
        """Returns the state without the offers for this character's sessions but one."""
        kept = frozenset(each for each in self.offers if each.who != who or each.session == all_but)
        return replace(self, offers=kept)

    def delayed(self, by: float) -> "State":
        """Returns the state in which whatever a node does by itself may come later by this much."""
        sessions = ((who, replace(each, since=each.since.later(by))) for who, each in self.sessions)
        rooms = ((where, replace(each, since=each.since and each.since.later(by))) for where, each in self.rooms)
        endings = frozenset(replace(each, latest=each.latest + by) for each in self.endings)
        expected = tuple(each._replace(latest=each.latest + by) for each in self.expected)
        return replace(self, sessions=tuple(sessions), rooms=tuple(rooms), endings=endings, expected=expected)

    def ended(self, who: str) -> "State":
        """Returns the state without its session; offers for it are void."""
        return self.with_session(who, None).without_offers(who)

    def out_of_line(self, who: str, where: str) -> "State":
        room = self.room(where)
        return self.with_room(where, replace(room, line=tuple(each for each in room.line if each != who)))

    def settled(self, at: Span) -> "State":
        """Returns the state with each room's note of since when a slot is free for somebody in line."""
        state = self
        for where, room in self.rooms:
            due = self.free(where) and bool(self.next_of(where))
            since = (room.since or at) if due else None
            if since != room.since:
                state = state.with_room(where, replace(room, since=since))
        return state

    def promoted(self, where: str, at: Span) -> "State":
        """Returns the state after the first in line that can be has been promoted; void entries before it are gone."""
        who, room = self.next_of(where), self.room(where)
        line = room.line[room.line.index(who) + 1 :]
        session = Session(where, "", "", NEW, at, shown=True)
        # The next slot, if there is one, has been free for as long as this one had been.
        return self.with_room(where, replace(room, line=line)).with_session(who, session).settled(at)
