"""Linearizability of one small object per key: is there an order of the operations that the object could have shown?

This is the search of Wing and Gong with a memory of visited positions. Take any operation that no other one surely
precedes, let the model do it, go on with the rest, and turn back where the model refuses. A position is what has been
done and the state that it left; a position that was seen before led nowhere then and is not tried again.

Positions must be small and comparable. Operations with a known outcome end soon after they begin, so a position stores
how many of them are done without a gap, and a few bits for those beyond. Operations of unknown outcome may be done at
any later time or never; they have bits of their own and need not all be done. An operation that the model calls a
`look` changes nothing, so the first order in which it fits is as good as any other.

The worst case is exponential in the overlap and in the unknown operations; for an orderly history it is near
O(n × overlap). Hence the limit: `ran-out` says nothing about the service.
"""

import math
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

from holdfast.check.history import History, Operation, Outcome, Value
from holdfast.check.invariants.result import DEFAULT_LIMIT, Contradiction, Judged, Limit, Result, contradiction, judge
from holdfast.check.plain import plain

# How many positions are visited between two looks at the clock.
_PACE = 4096


class _RanOutError(Exception):
    """Raised when the search has used up its limit."""


class Model(Protocol):
    """The object, as a pure function. An operation of unknown outcome has no answer, so any answer fits it."""

    @property
    def start(self) -> Hashable: ...

    @property
    def operations(self) -> tuple[str, ...]:
        """The names it knows; the first is the one that must occur."""

    @property
    def looks(self) -> tuple[str, ...]:
        """Those of them that never change the state, whatever it is."""

    def step(self, state: Hashable, operation: Operation) -> tuple[Hashable] | None:
        """Returns the state afterwards, in a tuple; None if the object can't have answered like this in this state."""


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
    """`acquire` gives the lock to the client unless another has it; `release` frees it if its holder asks."""

    start: str | None = None
    operations: tuple[str, ...] = ("acquire", "release")
    looks: tuple[str, ...] = ()

    def step(self, state: Hashable, operation: Operation) -> tuple[Hashable] | None:
        if operation.what == "release":
            return (None if state == operation.client else state,)
        return (operation.client,) if state in (None, operation.client) else None


def linearizable(history: History, model: Model, *, limit: Limit = DEFAULT_LIMIT) -> Result:
    """Judges whether some order of the operations explains all answers.

    Failed operations had no effect and are left out. A refusal that says something about the state has to be recorded
    as ok with a value.
    """
    name = f"a linearizable {type(model).__name__.lower()}"
    effort = _Effort(limit)

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        return _Search(key, operations, model, effort).run()

    try:
        return judge(name, history, model.operations, rule, limit)
    except _RanOutError as error:
        return Result(name, Judged.RAN_OUT, len(history), str(error))


class _Effort:
    """What is left of the limit, which all keys share."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._states = 0
        self._deadline = time.thread_time() + limit.seconds

    def spend(self) -> None:
        self._states += 1
        if self._states > self._limit.states:
            raise _RanOutError(f"more than {self._limit.states} positions, which is the limit")
        if self._states % _PACE == 0 and time.thread_time() > self._deadline:
            raise _RanOutError(f"more than {self._limit.seconds:g} s of processor time, which is the limit")


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
        """Searches depth first, with a stack of its own because a history is deeper than Python's recursion limit."""
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
        """Yields the positions that one more operation leads to, the most promising first."""
        done, beyond, used, state = position
        overlap, until = self._overlap(done, beyond)
        # The operation that was answered first most likely took effect first.
        for index in sorted(overlap, key=lambda index: self.known[index].completed):
            operation = self.known[index]
            if after := self.model.step(state, operation):
                yield (*_mark(done, beyond, index), used, after[0])
                if operation.what in self.model.looks:  # it fits here, and no other operation depends on its place
                    return
        for index, operation in enumerate(self.unknown):
            if operation.invoked > until:
                break
            after = None if used >> index & 1 else self.model.step(state, operation)
            if after and after[0] != state:  # one that changes nothing might as well not have happened
                yield done, beyond, used | 1 << index, after[0]

    def _overlap(self, done: int, beyond: int) -> tuple[list[int], float]:
        """Returns the known operations that may come next, and the first answer among them.

        An operation may come next if it was invoked before any other that is left was answered.
        """
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
        """Describes the furthest position: its state, and the operations of which none can come next."""
        done, beyond, used, state = self.furthest
        stuck, _ = self._overlap(done, beyond)
        place = f"{self.key}: " if self.key else ""
        count = _done(self.furthest)
        words = (
            f"{place}after {count} operations in the best order the state is {plain(state)}, "
            "and none of these can come next"
        )
        unknown = [operation for index, operation in enumerate(self.unknown) if used >> index & 1]
        last = [self._last_done(done, beyond)] if count else []
        return contradiction(words, [*(self.known[index] for index in stuck), *unknown, *last])

    def _last_done(self, done: int, beyond: int) -> Operation:
        return self.known[done + beyond.bit_length() - 1]


def _mark(done: int, beyond: int, index: int) -> tuple[int, int]:
    """Returns `done` and `beyond` with one more operation done. Bits count from `done`; leading ones move into it."""
    beyond |= 1 << (index - done)
    while beyond & 1:
        done, beyond = done + 1, beyond >> 1
    return done, beyond


def _done(position: _Position) -> int:
    return position[0] + position[1].bit_count()
