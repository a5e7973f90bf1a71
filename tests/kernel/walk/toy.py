"""A toy spec to walk over: a lock that one client holds, which lapses by itself; a server of it, and a model.

The server can be told to be wrong in one way. Its clock is a number, so that nothing here waits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.check.walk.play import Clock
from holdfast.check.walk.vocabulary import NO_NODE, Branch, Command, Pair, Rule, Seen, Step, Timer

CLIENTS = ("a", "b", "c")
LEASE, CLEANUP = 10.0, 4.0
# How long a call takes, so that there is an interval in which its effect may be.
TAKES = 0.01


@dataclass
class Server:
    """Takes and frees one lock. A lease lapses after LEASE seconds, and is cleaned up within CLEANUP more."""

    wrong: str = ""
    now: float = 100.0
    holder: str = ""
    until: float = 0.0
    takes: int = 0

    def take(self, who: str) -> str:
        self._lapse()
        if self.holder not in ("", who):
            return "busy"
        self.takes += self.holder == ""
        self.holder = who
        self.until = self.now + LEASE
        return "taken"

    def free(self, who: str) -> str:
        self._lapse()
        if self.holder != who:
            return "not yours"
        if self.wrong != "the second free does nothing" or self.takes % 2:
            self.holder = ""
        return "freed"

    def look(self) -> str:
        self._lapse()
        return self.holder

    def _lapse(self) -> None:
        late = {"never lapses": 1000.0, "lapses early": -5.0}.get(self.wrong, 2.0)
        if self.holder and self.now >= self.until + late:
            self.holder = ""


@dataclass(frozen=True)
class State:
    holder: str = ""
    # When the lease was last taken, as an interval.
    since: tuple[float, float] = (0.0, 0.0)


class LockModel:
    """`look` after every step tells who holds the lock."""

    def timers(self, state: State) -> Iterator[Timer[State]]:
        if state.holder:
            yield Timer(
                "the lapse",
                "lease",
                state.since[0] + LEASE,
                state.since[1] + LEASE + CLEANUP,
                lambda _lo, _hi: [State()],
                ("TOY-LAPSE",),
                (("who", state.holder),),
            )

    def branches(self, state: State, command: Command, seen: Seen) -> Iterator[Branch[State]]:
        who, at = command.get("who"), (seen.sent, seen.received)
        match command.name:
            case "take" if state.holder in ("", who):
                yield Branch((_said("TOY-TAKE", seen, "taken"),), State(who, at))
            case "take":
                yield Branch((_said("TOY-ONE", seen, "busy"),), state)
            case "free" if state.holder == who:
                yield Branch((_said("TOY-FREE", seen, "freed"),), State())
            case "free":
                yield Branch((_said("TOY-FREE", seen, "not yours"),), state)
            case "look":
                yield Branch((_said("TOY-LOOK", seen, state.holder),), state)
            case "lose":  # an answer that was lost: whether the lock was taken is not known
                yield Branch((), state)
                yield Branch((), State(who, at) if state.holder in ("", who) else state)

    def merged(self, states: Sequence[State]) -> Sequence[State]:
        return states

    def ready(self, _state: State, _command: Command) -> bool:
        return True

    def commands(self, _state: State) -> Iterable[Command]:
        return [Command.of(name, who=who) for name in ("take", "free") for who in CLIENTS]

    def openings(self) -> Sequence[Sequence[Command]]:
        return ()

    def races(self, _state: State) -> Iterable[Step]:
        return [(Command.of("take", who="a"), Command.of("take", who="b"))]

    def looks(self, _states: Sequence[State], _step: Step) -> Iterable[Command]:
        return [Command.of("look")]

    def situation(self, state: State, command: Command) -> str:
        return "free" if not state.holder else "mine" if state.holder == command.get("who") else "another's"

    def kind(self, command: Command) -> str:
        return command.name

    def goal(self) -> frozenset[Pair]:
        situations = ("free", "mine", "another's")
        waits = [Pair("lease", f"wait until {side}", NO_NODE) for side in ("before", "after")]
        return frozenset([*(Pair(s, name) for s in situations for name in ("take", "free")), *waits])

    def describe(self, command: Command) -> str:
        return f"{command.get('who')} {command.name}s" if command.get("who") else command.name


def _said(row: str, seen: Seen, expected: str) -> Rule:
    return Rule((row,), expected or "nobody", seen.what == expected)


@dataclass
class LockWorld:
    server: Server = field(default_factory=Server)
    closed: bool = False

    async def do(self, command: Command) -> Seen:
        sent = self.server.now
        who = command.get("who")
        match command.name:
            case "take":
                what = self.server.take(who)
            case "lose":
                self.server.take(who)
                what = "no answer"
            case "free":
                what = self.server.free(who)
            case _:
                what = self.server.look()
        self.server.now += TAKES
        return Seen(sent, self.server.now, what, what or "nobody")

    def can(self, _command: Command) -> bool:
        return True

    def relation(self, _command: Command) -> str:
        return NO_NODE

    async def close(self) -> None:
        self.closed = True


def clock_of(server: Server) -> Clock:
    async def sleep(seconds: float, _why: str) -> None:
        server.now += seconds

    return Clock(lambda: server.now, sleep)


def fresh(wrong: str = "") -> tuple[LockModel, LockWorld, Clock]:
    server = Server(wrong)
    return LockModel(), LockWorld(server), clock_of(server)


class _Words:
    """A spec whose states are words, for rules about timers alone; `look` tells a word."""

    LEGAL: Mapping[str, str] = {}

    def timers(self, state: str) -> Iterator[Timer[str]]:
        raise NotImplementedError

    def branches(self, state: str, _command: Command, seen: Seen) -> Iterator[Branch[str]]:
        yield Branch((_said("TOY-LOOK", seen, self.LEGAL.get(state, state)),), state)

    def merged(self, states: Sequence[str]) -> Sequence[str]:
        return states

    def ready(self, _state: str, _command: Command) -> bool:
        return True

    def commands(self, _state: str) -> Iterable[Command]:
        return []

    def openings(self) -> Sequence[Sequence[Command]]:
        return ()

    def races(self, _state: str) -> Iterable[Step]:
        return []

    def looks(self, _states: Sequence[str], _step: Step) -> Iterable[Command]:
        return []

    def situation(self, state: str, _command: Command) -> str:
        return state

    def kind(self, command: Command) -> str:
        return command.name

    def goal(self) -> frozenset[Pair]:
        return frozenset()

    def describe(self, command: Command) -> str:
        return command.name


class Chained(_Words):
    """The end may come between 0 and 20; a signal, between 5 and 8, makes it due by 9."""

    def timers(self, state: str) -> Iterator[Timer[str]]:
        if state != "done":
            latest = 20.0 if state == "waiting" else 9.0
            yield Timer("the end", "end", 0.0, latest, lambda _lo, _hi: ["done"], ("TOY-END",))
        if state == "waiting":
            yield Timer("the signal", "signal", 5.0, 8.0, lambda _lo, _hi: ["signalled"])


class Doubtful(_Words):
    """What is seen would be explained by an end that is overdue, and by a lapse that came too early."""

    LEGAL: Mapping[str, str] = {"start": "odd", "ended": "fine", "lapsed": "odd"}

    def timers(self, state: str) -> Iterator[Timer[str]]:
        if state != "lapsed":
            yield Timer("a lapse", "lapse", 50.0, 60.0, lambda _lo, _hi: ["lapsed"], ("TOY-EARLY",))
        if state == "start":
            yield Timer("the end", "end", 5.0, 10.0, lambda _lo, _hi: ["ended"], ("TOY-OVERDUE",))
