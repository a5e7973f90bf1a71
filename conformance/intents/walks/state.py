"""What a target holds, as the spec has it: sessions and their leases, mappings, workers, the phase, the secrets.

A state is a value: every change makes another one. Times are intervals on our clock.

Leases belong to sessions, so a state says of each session what it *holds*: its channel (the service lease), or both its
channel and a tuner slot. Recordings hold nothing. Who runs a session renews its leases; once nobody does (its worker is
dead or stands still, or none has picked it up yet) they are *unkept*, and one life time later they lapse. What a
session held that has just ended may be held for a moment longer (`since` of an ended session), as the document leaves
open what comes first.

Whether a channel is taken, and whether all slots are, can so be true, false, or not known: None.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.conformance.shared.walks import Span, with_entry

CHANNELS, RECORDINGS, PROFILES = ("c1", "c2", "c3"), ("r1", "r2"), ("p1", "p2")
TARGETS = (*CHANNELS, *RECORDINGS)
# Fewer than channels, so that a session can be without one.
SLOTS = 2
NEW, STARTING, READY, ENDED = "new", "starting", "ready", "ended"
# What a session holds.
NOTHING, CHANNEL, BOTH = "", "channel", "both"
# How a session has ended.
STOPPED, BUSY, NO_TUNER, FAILED = "stopped", "busy", "no tuner", "failed"
# It lost its leases, it was left behind by a worker that was killed, or its worker was told to stop.
EXPIRED, GONE, SHUT = "expired", "gone", "shut down"
# How the pipelines of a target behave: they start slowly, more slowly than a lease lives, never, or end by themselves.
USUAL, SLOW, LONG, FAILS, BRIEF = "", "slow", "long", "fails", "brief"
UP, STILL, DOWN = "up", "still", "down"
# The second worker is a standby, which is started later.
FIRST, STANDBY = "w1", "w2"
BEFORE = Span(0.0, 0.0)
# Sessions that have ended and are still looked at, beside the last one of each key.
KEPT = 6


class Key(NamedTuple):
    """What makes two starts identical: channel or recording, profile and bucket (section 3.3)."""

    target: str
    profile: str
    bucket: int = 0

    @property
    def live(self) -> bool:
        return self.target in CHANNELS


@dataclass(frozen=True)
class Session:
    """`since`: when it came to be in this mode. `said` are the state and reason that it showed when it had ended.

    `secret` is the one under which its mapping was written; it is not `bound` any more once another session has taken
    the mapping. `worker` is empty where either may run it. `due` is when a pipeline that starts slowly is up, or when
    the session of a dead worker has surely been ended by another.
    """

    id: str
    key: Key
    secret: str
    mode: str = NEW
    since: Span = BEFORE
    holds: str = NOTHING
    unkept: Span | None = None
    lapsed: Span | None = None
    due: Span | None = None
    # When a worker has taken its leases, or taken them over from the API.
    picked: Span | None = None
    worker: str = ""
    dead: bool = False
    stopping: bool = False
    bound: bool = True
    # Whether it has run for longer than a lease lives that is not renewed.
    aged: bool = False
    why: str = ""
    said: tuple[str, str] = ("", "")

    @property
    def live(self) -> bool:
        return self.mode != ENDED

    @property
    def begun(self) -> bool:
        """Whether a worker has picked it up."""
        return self.mode in (STARTING, READY)

    @property
    def keeps(self) -> bool:
        """Whether it surely holds what it holds: it lives, or its worker is dead and nobody releases anything."""
        return self.live or self.unkept is not None

    def held(self, at: Span) -> bool | None:
        """Whether what it holds is held at this time; None: it has just ended, and it may be."""
        if self.holds == NOTHING:
            return False
        return True if self.keeps else None if at.lo < self.since.hi else False

    def ended(self, why: str, at: Span) -> "Session":
        """Returns it after its end; what it held may be held until the end of the interval."""
        return replace(self, mode=ENDED, why=why, since=at, unkept=None, due=None, stopping=False, said=("", ""))


class Announced(NamedTuple):
    """An entry of the bus that has to be there, or may be there if it is not `due`."""

    kind: str
    id: str
    due: bool


@dataclass(frozen=True)
class State:
    """`secrets` are the current one and the previous one, empty if there is none.

    `foreign` are channels whose lease somebody else holds, `slots` how many tuner slots. `runs` counts by target how
    often a pipeline was asked to start.
    """

    phase: int = 2
    secrets: tuple[str, str] = ("s0", "")
    workers: tuple[tuple[str, str], ...] = ((FIRST, UP), (STANDBY, DOWN))
    sessions: tuple[Session, ...] = ()
    foreign: frozenset[str] = frozenset()
    slots: int = 0
    paces: tuple[tuple[str, str], ...] = ()
    runs: tuple[tuple[str, int], ...] = ()
    announced: tuple[Announced, ...] = ()

    # --- workers

    def worker(self, name: str) -> str:
        return dict(self.workers)[name]

    @property
    def up(self) -> tuple[str, ...]:
        return tuple(name for name, how in self.workers if how == UP)

    @property
    def working(self) -> bool:
        return bool(self.up)

    def attended(self, session: Session) -> bool:
        """Whether somebody who works looks after it."""
        if not session.begun:
            return self.working
        return not session.dead and (session.worker in self.up if session.worker else self.working)

    # --- sessions

    def session(self, id_: str) -> Session | None:
        return next((each for each in self.sessions if each.id == id_), None)

    def last(self, key: Key) -> Session | None:
        """Returns the youngest session of this key."""
        return next((each for each in reversed(self.sessions) if each.key == key), None)

    @property
    def living(self) -> tuple[Session, ...]:
        return tuple(each for each in self.sessions if each.live)

    def of_target(self, target: str) -> tuple[Session, ...]:
        """Returns the sessions of a channel or recording that have not ended."""
        return tuple(each for each in self.living if each.key.target == target)

    def holder(self, channel: str) -> Session | None:
        """Returns the session that holds this channel."""
        return next((each for each in self.sessions if each.key.target == channel and each.holds and each.keeps), None)

    def pace(self, target: str) -> str:
        return dict(self.paces).get(target, USUAL)

    # --- contention

    def taken(self, channel: str, at: Span, but: str = "") -> bool | None:
        """Whether another session than this one, or somebody else, holds the channel."""
        if channel in self.foreign:
            return True
        others = [each.held(at) for each in self.sessions if each.key.target == channel and each.id != but]
        return True if True in others else None if None in others else False

    def full(self, at: Span) -> bool | None:
        """Whether no tuner slot is free."""
        held = [each.held(at) for each in self.sessions if each.holds == BOTH]
        if held.count(True) + self.slots >= SLOTS:
            return True
        return None if len(held) - held.count(False) + self.slots >= SLOTS else False

    # --- changes

    def having(self, session: Session) -> "State":
        """Returns the state with this session, in the place of the one of its id if there is one."""
        if self.session(session.id) is None:
            return replace(self, sessions=(*self.sessions, session))
        return replace(self, sessions=tuple(session if each.id == session.id else each for each in self.sessions))

    def begun_with(self, session: Session) -> "State":
        """Returns the state with a new session, which the mapping of its key leads to from now on."""
        unbound = (
            replace(each, bound=False) if (each.key, each.secret) == (session.key, session.secret) else each
            for each in self.sessions
        )
        last = {each.key: each.id for each in (*self.sessions, session)}
        gone = [each.id for each in self.sessions if not each.keeps and last[each.key] != each.id][:-KEPT]
        return replace(self, sessions=(*(each for each in unbound if each.id not in gone), session))

    def asked_for(self, target: str) -> "State":
        """Returns the state after a pipeline of this target was asked to start."""
        return replace(self, runs=with_entry(self.runs, target, dict(self.runs).get(target, 0) + 1))

    def announcing(self, kind: str, id_: str, *, due: bool) -> "State":
        return replace(self, announced=tuple(sorted((*self.announced, Announced(kind, id_, due)))))

    def with_worker(self, name: str, how: str) -> "State":
        return replace(self, workers=with_entry(self.workers, name, how))

    def with_pace(self, target: str, pace: str) -> "State":
        return replace(self, paces=with_entry(self.paces, target, pace or None))


def secrets_after(secrets: tuple[str, str], how: str) -> tuple[str, str]:
    """Returns the secrets after a change: the old one stays as the previous one, is forgotten, or comes back."""
    current, previous = secrets
    if how == "turn back":
        return previous, current
    fresh = f"s{max(int(each[1:]) for each in secrets if each) + 1}"
    return fresh, current if how == "rotate" else ""
