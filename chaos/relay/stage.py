"""A stage: one toxic at work on one direction of one TCP connection.

What the toxic does is a program: a generator that asks for the next item (`Take`) or for time (`Sleep`), and sends
items on. The stage answers each wish when it can: a `Take` when an item waits and there is room behind, a `Sleep` by a
timer. Programs are driven from callbacks, not tasks, so that a change is in force everywhere when the call that
asked for it returns, and draws are made in the order of the calls.

An item is taken only when there is room behind the stage. A stage that takes nothing more fills up, then the one
before it, and in the end the relay stops reading its socket, so that the sender sees the back-pressure of a network.

A stage is started, interrupted and started again (an update, a neighbour that comes or goes), and disposed of once. An
interrupted program is resumed from its `Sleep` with True and must send or give back what it has in hand; the queue in
front of it stays. `_running` is set while a program runs: sending may call back into the same stage, and must not
resume a generator that is not suspended.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from holdfast.chaos.links.flow import Mark
from holdfast.chaos.relay.toxic import Toxic


class Chunk(NamedTuple):
    data: bytes
    at: float  # when it was received, or would have been without the stages before


class Take(NamedTuple):
    """Resumed with the next item, or with None when none came `within` seconds."""

    within: float | None = None


class Sleep(NamedTuple):
    """Resumed with whether it was interrupted: then what is in hand must be sent, or given back."""

    seconds: float | None


Item = Chunk | Mark
Program = Generator[Take | Sleep, Any, None]
TAKE = Take()


@dataclass(frozen=True)
class Work:
    """How a type of toxic works."""

    program: Callable[["Stage"], Program]
    capacity: int = 1  # items that may wait in front of it
    sees_marks: bool = False  # else ends and resets pass it by, in their order


class Outlet(Protocol):
    @property
    def ready(self) -> bool: ...

    def put(self, item: Item) -> None: ...


class Connection(Protocol):
    """What a program may do to the connection that it works on."""

    def dropped(self, chunk: Chunk) -> None: ...

    def close_after(self, seconds: float) -> None: ...


class Stage:
    def __init__(
        self, toxic: Toxic, choose: Callable[[Toxic], Work], rng: random.Random, connection: Connection
    ) -> None:
        self.toxic = toxic
        self.rng = rng
        self.connection = connection
        self.passed = 0  # bytes that count against a limit, kept over restarts
        self.hit = False
        self.next: Outlet
        self.refill: Callable[[], None] = lambda: None
        self._choose = choose
        self._queue: deque[Item] = deque()
        self._work = Work(lambda _: no_program())
        self._program = no_program()
        self._wish: Take | Sleep | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._running = False

    @property
    def ready(self) -> bool:
        return len(self._queue) < self._work.capacity

    def start(self, passing: Work) -> None:
        """Draw whether the toxic hits this connection, and start its program, or `passing` for a spared one."""
        self.hit = self.rng.random() < self.toxic.toxicity
        self._work = self._choose(self.toxic) if self.hit else passing
        self._program = self._work.program(self)
        self._resume(None)

    def put(self, item: Item) -> None:
        self._queue.append(item)
        self.advance()

    def advance(self) -> None:
        """Resume a program that waits for an item, if there is one now and room behind."""
        if self._running or not isinstance(self._wish, Take):
            return
        self._running = True  # taking makes room, and the stage before may fill it at once
        item = self._take()
        self._running = False
        if item is not None:
            self._resume(item)

    def send(self, item: Item) -> None:
        self.next.put(item)

    def give_back(self, item: Item) -> None:
        self._queue.appendleft(item)

    def interrupt(self) -> None:
        """End the program, after it has sent or given back what it has in hand."""
        self._cancel_timer()
        self._running = True
        try:
            while isinstance(self._wish, Sleep):
                self._wish = self._program.send(True)
        except StopIteration:
            pass
        finally:
            self._running = False
        self._wish = None
        self._program.close()

    def flush(self) -> None:
        """Send everything that waits, in order, because this stage is being removed."""
        while self._queue:
            self.send(self._queue.popleft())

    def dispose(self) -> None:
        self._cancel_timer()
        self._wish = None
        self._queue.clear()
        self._program.close()

    def _resume(self, value: Item | bool | None) -> None:
        self._cancel_timer()
        self._running = True
        try:
            self._wish = self._program.send(value)
            while isinstance(self._wish, Take) and (item := self._take()) is not None:
                self._wish = self._program.send(item)
        except StopIteration:
            self._wish = None
        finally:
            self._running = False
        self._arm()

    def _take(self) -> Item | None:
        while self._queue and self.next.ready:
            item = self._queue.popleft()
            self.refill()
            if isinstance(item, Chunk) or self._work.sees_marks:
                return item
            self.send(item)
        return None

    def _arm(self) -> None:
        wish = self._wish
        seconds = wish.within if isinstance(wish, Take) else wish.seconds if wish is not None else None
        if seconds is not None:
            self._wake_at(time.monotonic() + seconds)

    def _wake_at(self, due: float) -> None:
        wait = max(0.0, due - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(wait, self._wake, due)

    def _wake(self, due: float) -> None:
        if time.monotonic() < due:  # loops round to milliseconds, and a fault must not be shorter than asked
            self._wake_at(due)
        else:
            self._resume(None if isinstance(self._wish, Take) else False)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def no_program() -> Program:
    yield from ()
