"""The words of a walk.

A *model* is a reading of a spec as pure functions over *states*. It does no I/O and knows no clock: what was done and
when comes to it as `Seen`, and what will happen by itself stands in the state as `Timer`s. A *world* is the target with
the client's own knowledge of it (ids and tokens that it was told); it performs commands and returns what it saw.

A command names its arguments abstractly ("the session of a", "the other node"), never by ids, so that a list of
commands means the same on every fresh world. That is what makes a walk a file, and a finding short: commands that are
left out do not make the rest meaningless.

For one state and one command the model lists its *branches*: each is a legal continuation with the rules that have to
hold in it and the state it leads to. A branch whose rules all hold survives. Where a spec leaves something open, there
are several branches; where the outcome is unknown, several survive, and the target is in one of several states. A
target is found out when no branch of any possible state survives.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Value = str | int | bool
S = TypeVar("S")
NO_NODE = "-"


@dataclass(frozen=True)
class Command:
    """Something that a client, an operator or the clock does; `args` are names of the model's world."""

    name: str
    args: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, name: str, **args: Value) -> "Command":
        return cls(name, tuple(sorted(args.items())))

    def get(self, name: str) -> str:
        """Returns an argument as text; empty if it was not given."""
        # Called some thousand times for each draw, so no dictionary is made of them.
        for known, value in self.args:
            if known == name:
                return str(value)
        return ""

    def flag(self, name: str) -> bool:
        return bool(dict(self.args).get(name, False))

    def number(self, name: str) -> int:
        return int(dict(self.args).get(name, 0))

    def to_json(self) -> dict[str, Value]:
        return {"do": self.name, **dict(self.args)}

    @classmethod
    def from_json(cls, record: Mapping[str, Value]) -> "Command":
        return cls.of(str(record["do"]), **{name: value for name, value in record.items() if name != "do"})

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.args)])


# Commands that are sent at the same instant; nearly always one.
Step = tuple[Command, ...]


@dataclass(frozen=True)
class Seen:
    """What came of a command. Its effect, if any, was between `sent` and `received`, on the monotonic clock."""

    sent: float
    received: float
    what: Any
    text: str
    # Whether slowness may explain it: then an overloaded machine excuses a finding about it.
    late: bool = False


@dataclass(frozen=True)
class Rule:
    """One demand on what was seen, with the rows of the catalogue that state it (`ID`, or `ID#part`)."""

    rows: tuple[str, ...]
    expected: str
    held: bool
    # Whether slowness may explain that it does not hold.
    late: bool = False


@dataclass(frozen=True)
class Branch(Generic[S]):
    """A legal continuation, if its rules hold; `state` is what the target is in afterwards."""

    rules: tuple[Rule, ...]
    state: S

    @property
    def broken(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if not rule.held)

    def describe(self) -> str:
        return ", ".join(dict.fromkeys(rule.expected for rule in self.rules)) or "anything"


@dataclass(frozen=True)
class Timer(Generic[S]):
    """Something that the target does by itself: not before `earliest`, not after `latest` (infinite: perhaps never).

    `fire` gets the interval in which it happens and returns the states that it may lead to. `rows` demand that it
    happens in time, `not_before` that it does not happen sooner (`rows` too, if none are given). `about` are arguments
    of commands that can tell whether it has happened. `waited_for` is false for what may happen at any moment: there
    is no deadline to wait for.
    """

    name: str
    kind: str
    earliest: float
    latest: float
    fire: Callable[[float, float], Iterable[S]]
    rows: tuple[str, ...] = ()
    about: tuple[tuple[str, Value], ...] = ()
    waited_for: bool = True
    not_before: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class Pair:
    """What coverage counts: a command in a class of states, through a node in this relation to what it is about."""

    situation: str
    command: str
    relation: str = NO_NODE

    def __str__(self) -> str:
        return f"{self.situation} · {self.command} · {self.relation}"


class Model(Protocol[S]):
    """A spec as pure functions. Everything here is total: it answers for every state and every command."""

    def timers(self, state: S) -> Iterable[Timer[S]]: ...

    def branches(self, state: S, command: Command, seen: Seen) -> Iterable[Branch[S]]:
        """Returns the legal continuations of a command, or of a look at something, in this state."""

    def merged(self, states: Sequence[S]) -> Sequence[S]:
        """Returns fewer states that allow no less, such as one for all that differ only in when something happened."""

    def ready(self, state: S, command: Command) -> bool:
        """Whether the command makes sense in this state and the spec says what comes of it."""

    def commands(self, state: S) -> Iterable[Command]:
        """Returns commands that may be drawn in this state; those that are not `ready` are left out by the caller."""

    def openings(self) -> Sequence[Sequence[Command]]:
        """Returns ways to begin a walk in the middle of things: with much that is held, waited for or listed."""

    def races(self, state: S) -> Iterable[Step]:
        """Returns commands that may be drawn together, to be sent at the same instant."""

    def looks(self, states: Sequence[S], step: Step) -> Iterable[Command]:
        """Returns what is looked at after this step, of whatever the target lets us see."""

    def situation(self, state: S, command: Command) -> str:
        """Returns the class of this state as far as the command is concerned; a few words."""

    def kind(self, command: Command) -> str:
        """Returns what coverage calls the command: its name, with the arguments that make it another one."""

    def goal(self) -> frozenset[Pair]:
        """Returns every pair that a walk can reach on this target."""

    def describe(self, command: Command) -> str:
        """Returns the command as a sentence of a story."""


class World(Protocol):
    """A target, and what its client knows. A fresh one for every walk."""

    async def do(self, command: Command) -> Seen: ...

    def can(self, command: Command) -> bool:
        """Whether the client knows all that the command needs, such as the token that it names."""

    def relation(self, command: Command) -> str:
        """Returns how the node of the command stands to what it is about: `same`, `other`, or NO_NODE."""

    async def close(self) -> None:
        """Ends whatever the walk has left open on the target."""


@dataclass(eq=False)
class Broken(Exception):  # noqa: N818 - what was found, not an error of ours
    """Raised where no possible state explains what was seen."""

    rows: tuple[str, ...]
    expected: tuple[str, ...]
    seen: str
    late: bool
    # For what came too late: by how many seconds at least.
    overdue: float = 0.0
    rules: tuple[Rule, ...] = ()
    # What another target did, which takes the same walk (`holdfast.check.walk.against`).
    beside: str = ""

    def __str__(self) -> str:
        return f"expected {' or '.join(self.expected)}; seen {self.seen}"


class TooUncertain(Exception):  # noqa: N818 - nothing went wrong
    """Raised where a target may be in so many states that hardly anything would contradict them."""
