"""What an invariant says about a history, and how much work it may do to find out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.check.decisive import judged
from holdfast.check.finding import Inconclusive, Unsafe
from holdfast.check.history import History, HistoryError, Operation


class Judged(StrEnum):
    HOLDS = "holds"
    VIOLATED = "violated"
    RAN_OUT = "ran-out"


@dataclass(frozen=True)
class Limit:
    """How much work an invariant may do. Beyond it the answer is `ran-out`, which never counts as `holds`.

    Seconds are processor time, so that a busy machine does not change the answer.
    """

    operations: int = 1_000_000
    states: int = 2_000_000
    seconds: float = 5.0


DEFAULT_LIMIT = Limit()


@dataclass(frozen=True)
class Result:
    invariant: str
    judged: Judged
    operations: int
    """How many operations the answer rests on."""
    words: str = ""
    evidence: tuple[Operation, ...] = ()
    """The fewest operations that contradict each other, in the order of their invocation."""
    start: float = 0.0

    def describe(self) -> str:
        """Returns the result for people: one sentence, then one line per operation, in seconds since the first one."""
        head = f"{self.invariant}: {self.judged} ({self.operations} operations)"
        lines = [f"{head}: {self.words}" if self.words else head]
        return "\n".join([*lines, *(f"  {operation.describe(self.start)}" for operation in self.evidence)])


@dataclass(frozen=True)
class Contradiction:
    words: str
    evidence: tuple[Operation, ...]


# Judges the operations of one key, in the order of their invocation.
Rule = Callable[[str, list[Operation]], Contradiction | None]


def contradiction(words: str, evidence: Iterable[Operation]) -> Contradiction:
    return Contradiction(words, tuple(sorted(evidence, key=lambda operation: operation.invoked)))


def judge(invariant: str, history: History, named: Sequence[str], rule: Rule, limit: Limit) -> Result:
    """Applies the rule to each key in turn, until one contradicts itself.

    Raises HistoryError if there is no operation of the first name: a misspelt name would hold for every target.
    """
    if named[0] not in history.names:
        there = ", ".join(sorted(history.names)) or "none at all"
        raise HistoryError(f"{invariant}: no operation {named[0]!r} in the history; it has: {there}")
    total = sum(operation.what in named for operation in history)
    if total > limit.operations:
        return Result(invariant, Judged.RAN_OUT, total, f"more than {limit.operations} operations, which is the limit")
    for key, operations in history.by_key.items():
        if found := rule(key, [operation for operation in operations if operation.what in named]):
            return Result(invariant, Judged.VIOLATED, total, found.words, found.evidence, history.start)
    return Result(invariant, Judged.HOLDS, total)


def require(result: Result) -> None:
    """For checks: raises Unsafe for a violation, Inconclusive for `ran-out`, and returns if the invariant holds."""
    judged()
    if result.judged is Judged.RAN_OUT:
        raise Inconclusive(f"{result.invariant} could not be decided: {result.words}")
    if result.judged is Judged.VIOLATED:
        raise Unsafe([result.invariant], result.describe())


def possible(operations: Iterable[Operation], what: str) -> Iterator[Operation]:
    return (operation for operation in operations if operation.what == what and operation.possible)


def certain(operations: Iterable[Operation], what: str) -> Iterator[Operation]:
    return (operation for operation in operations if operation.what == what and operation.ok)
