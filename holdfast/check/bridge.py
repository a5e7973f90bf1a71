"""Runs sync code inside an async check: in a thread of its own, which calls back onto the check's loop.

A property tester or any other library without an event loop gets a `call` that runs a coroutine on the loop, blocks the
thread meanwhile, and returns the result. Everything that touches the target, the transcript or the context happens on
the loop; the thread owns only the library's own state. So checks need no locks.

How a call ends decides what happens to the sync code:

- A finding is an AssertionError. It is raised inside the library, which may catch it and search for a smaller case.
- Everything else (a cancelled check, an inconclusive step, an error of the harness) closes the bridge. The first such
  exception is kept as `reason`; this call and every later one raises `_End`, which libraries do not catch, and
  `in_thread` raises the kept exception, not what the library made of being ended.

When the check is cancelled while the thread is in a call, `close` cancels that call on the loop. A thread that computes
without calling can't be interrupted: it runs on as a daemon until its next call, which raises `_End`.
"""

import asyncio
import concurrent.futures
import contextvars
import threading
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from holdfast.check.finding import Inconclusive

R = TypeVar("R")
# CPython 3.11 counts the depth of syntax trees for all threads together; property testers parse source as they go.
_LOST_COUNT = "AST constructor recursion depth mismatch"


class Call(Protocol):
    """Runs a coroutine on the check's loop, from the thread, and waits for its result."""

    def __call__(self, work: Coroutine[Any, Any, R]) -> R: ...


class _End(BaseException):
    """Ends the sync code. Not an Exception, because libraries catch those and try again."""


class _Bridge:
    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        self.reason: BaseException | None = None
        self._loop = loop
        self._deadline = deadline
        self._closed = threading.Event()
        self._current: concurrent.futures.Future[Any] | None = None

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        if self._closed.is_set():
            work.close()
            raise _End
        future = asyncio.run_coroutine_threadsafe(self._in_time(work), self._loop)
        self._current = future
        if self._closed.is_set():  # closed between the first test and the start, when there was no future to cancel
            future.cancel()
        try:
            return future.result()
        except AssertionError:
            raise
        except BaseException as error:
            self.reason = error
            self._closed.set()
            raise _End from error

    async def _in_time(self, work: Coroutine[Any, Any, R]) -> R:
        try:
            async with asyncio.timeout(self._deadline) as limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"a call from sync code took longer than {self._deadline:g} s") from None
            raise

    def close(self) -> None:
        self._closed.set()
        if self._current is not None:
            self._current.cancel()


def _raised_outside(error: BaseException) -> BaseException:
    """Returns what `in_thread` raises for an exception that left the sync code."""
    if isinstance(error, _End):
        return asyncio.CancelledError()
    if _LOST_COUNT in "".join(traceback.format_exception(error)):
        return Inconclusive(f"a fault of the interpreter with threads: {_LOST_COUNT}")
    return error


async def in_thread(work: Callable[[Call], R], *, deadline: float) -> R:
    """Runs `work(call)` in a thread and returns its result.

    Raises TimeoutError when one of its calls takes longer than `deadline` seconds. A cancelled check ends the work.
    """
    bridge = _Bridge(asyncio.get_running_loop(), deadline)
    done: concurrent.futures.Future[R] = concurrent.futures.Future()

    def run() -> None:
        done.set_running_or_notify_cancel()
        try:
            done.set_result(work(bridge.call))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
            done.set_exception(bridge.reason or _raised_outside(error))

    # A daemon: a thread that computes without calling can't be ended, and must not keep the process alive.
    # In the check's own context: what is called from there belongs to the check.
    whole = contextvars.copy_context()
    threading.Thread(target=lambda: whole.run(run), name="bridge", daemon=True).start()
    try:
        return await asyncio.wrap_future(done)
    finally:
        bridge.close()
