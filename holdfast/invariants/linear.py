"""Linearizability of one small object a key: is there an order of the operations that the object could have shown?

The search of Wing and Gong, with a memory of positions that led nowhere: take any operation that no other one surely
precedes, let the model do it, go on with the rest, turn back where the model refuses. Known operations close soon, so a
position is small: how far all is done, and which of the few that overlap there. Operations of unknown outcome may be
done at any later time or never, and are kept apart. Worst case exponential in the overlap and in the unknown ones; near
O(n × overlap) where the history is in order. Hence the limit.
"""

import math
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

from holdfast.history import History, Operation, Outcome, Value
from holdfast.invariants.result import DEFAULT_LIMIT, Contradiction, Judged, Limit, Result, contradiction, judge

# How many positions are looked at between two looks at the clock.
_PACE = 4096


class _RanOutError(Exception):
    """The search has used up its limit."""


class Model(Protocol):
    """The object, as a function. Unknown operations have no answer, so any answer fits them."""

    @property
    def start(self) -> Hashable: ...

    @property
    def operations(self) -> tuple[str, ...]:
        """The names it knows; the first is the one that must occur."""

    @property
    def looks(self) -> tuple[str, ...]:
        """Those of them that change the state never, whatever it is."""

    def step(self, state: Hashable, operation: Operation) -> tuple[Hashable] | None:
        """The state afterwards, in a tuple; None where it can't have answered so."""


@dataclass(frozen=True)
class Register:
    """`write` sets its argument, `read` answers with the value."""

    start: Value = None
    operations: tuple[str, ...] = ("write", "read")
    looks: tuple[str, ...] = ("read",)

    def step(self, state: Hashable, operation: Operation) -> tuple[Hashable] | None:
        if operation.what == "write":
            return (operation.argument,)
        return (state,) if operation.value == state or not operation.ok else None


@dataclass(frozen=True)
class Lock:
    """`acquire` gives the lock to the client unless another has it; `release` by its holder frees it, else it idles."""

    start: str | None = None
    operations: tuple[str, ...] = ("acquire", "release")
    looks: tuple[str, ...] = ()

    def step(self, state: Hashable, operation: Operation) -> tuple[Hashable] | None:
        if operation.what == "release":
            return (None if state == operation.client else state,)
        return (operation.client,) if state in (None, operation.client) else None


def linearizable(history: History, model: Model, *, limit: Limit = DEFAULT_LIMIT) -> Result:
    """Failed operations had no effect and are not looked at: a refusal that tells something is an ok with a value."""
    name = f"a linearizable {type(model).__name__.lower()}"
    effort = _Effort(limit)

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        return _Search(key, operations, model, effort).run()

    try:
        return judge(name, history, model.operations, rule, limit)
    except _RanOutError as error:
        return Result(name, Judged.RAN_OUT, len(history), str(error))


class _Effort:
    """One limit for all keys."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._states = 0
        self._deadline = time.thread_time() + limit.seconds

    def spend(self) -> None:
        self._states += 1
        if self._states > self._limit.states:
            raise _RanOutError(f"more than the {self._limit.states} positions of its limit")
        if self._states % _PACE == 0 and time.thread_time() > self._deadline:
            raise _RanOutError(f"more than the {self._limit.seconds:g} s of its limit")


# (how many known operations are done without a gap, bits of those done beyond, bits of the unknown ones done, state)
_Position = tuple[int, int, int, Hashable]


class _Search:
    def __init__(self, key: str, operations: list[Operation], model: Model, effort: _Effort) -> None:
        self.key = key
        self.known = [operation for operation in operations if operation.ok]
        self.unknown = [operation for operation in operations if operation.outcome is Outcome.UNKNOWN]
        self.model = model
        self.effort = effort
        self.furthest: _Position = (0, 0, 0, model.start)

    def run(self) -> Contradiction | None:
        """Depth first, with a stack of its own: a history is deeper than Python's."""
        start = self.furthest
        seen, stack = {start}, [self._next(start)]
        while stack:
            position = next(stack[-1], None)
            if position is None:
                stack.pop()
                continue
            if position[0] == len(self.known):
                return None
            if position in seen:
                continue
            seen.add(position)
            self.effort.spend()
            if _done(position) > _done(self.furthest):
                self.furthest = position
            stack.append(self._next(position))
        return self._explain() if self.known else None

    def _next(self, position: _Position) -> Iterator[_Position]:
        done, beyond, used, state = position
        overlap, until = self._overlap(done, beyond)
        # Whatever closes first is the likeliest to have been first.
        for index in sorted(overlap, key=lambda index: self.known[index].completed):
            operation = self.known[index]
            if after := self.model.step(state, operation):
                yield (*_mark(done, beyond, index), used, after[0])
                if operation.what in self.model.looks:  # it fits here, and nothing else depends on where it stands
                    return
        for index, operation in enumerate(self.unknown):
            if operation.invoked > until:
                break
            after = None if used >> index & 1 else self.model.step(state, operation)
            if after and after[0] != state:  # one that changes nothing might as well not have happened
                yield done, beyond, used | 1 << index, after[0]

    def _overlap(self, done: int, beyond: int) -> tuple[list[int], float]:
        """The known operations that may come next: all that were invoked before any of them was answered."""
        until, found = math.inf, []
        for index in range(done, len(self.known)):
            operation = self.known[index]
            if operation.invoked > until:
                break
            if not beyond >> (index - done) & 1:
                until = min(until, operation.completed)
                found.append(index)
        return found, until

    def _explain(self) -> Contradiction:
        """The place beyond which no order leads: what can come next there, and what the object was before."""
        done, beyond, used, state = self.furthest
        stuck, _ = self._overlap(done, beyond)
        place = f"{self.key}: " if self.key else ""
        count = _done(self.furthest)
        words = f"{place}after {count} operations in the best order it is {state!r}, and none of these can come next"
        unknown = [operation for index, operation in enumerate(self.unknown) if used >> index & 1]
        last = [self._last_done(done, beyond)] if count else []
        return contradiction(words, [*(self.known[index] for index in stuck), *unknown, *last])

    def _last_done(self, done: int, beyond: int) -> Operation:
        return self.known[done + beyond.bit_length() - 1]


def _mark(done: int, beyond: int, index: int) -> tuple[int, int]:
    """Bits are counted from `done`; those without a gap move into it."""
    beyond |= 1 << (index - done)
    while beyond & 1:
        done, beyond = done + 1, beyond >> 1
    return done, beyond


def _done(position: _Position) -> int:
    return position[0] + position[1].bit_count()
