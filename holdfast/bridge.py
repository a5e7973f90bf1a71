"""Sync code inside an async check: it runs in a thread of its own and calls back onto the check's loop.

A property tester or any other library that knows no event loop gets a `call` that runs a coroutine on the loop and
returns its result. A finding comes back to the library as the AssertionError that it is, so that it may look for a
smaller case. Everything else (a cancelled check, an inconclusive step, our own bug) ends the sync code at once,
whatever it catches, and comes out of `in_thread`.
"""

import asyncio
import concurrent.futures
import threading
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from holdfast.finding import Inconclusive

R = TypeVar("R")
# CPython 3.11 counts the depth of syntax trees for all threads together; property testers parse source as they go.
_LOST_COUNT = "AST constructor recursion depth mismatch"


class Call(Protocol):
    """Runs a coroutine on the check's loop, from the thread, and waits for its result."""

    def __call__(self, work: Coroutine[Any, Any, R]) -> R: ...


class _End(BaseException):
    """Not an Exception: libraries that catch those, and try again, have to let it pass."""


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
        if self._closed.is_set():  # between the look and the start; whoever closed it saw no future to cancel
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


def _told(error: BaseException) -> BaseException:
    if isinstance(error, _End):
        return asyncio.CancelledError()
    if _LOST_COUNT in "".join(traceback.format_exception(error)):
        return Inconclusive(f"the interpreter stumbled over its own threads: {_LOST_COUNT}")
    return error


async def in_thread(work: Callable[[Call], R], *, deadline: float) -> R:
    """What `work` returns. Each of its calls may take `deadline` seconds; when the check is cancelled, it is ended."""
    bridge = _Bridge(asyncio.get_running_loop(), deadline)
    done: concurrent.futures.Future[R] = concurrent.futures.Future()

    def run() -> None:
        done.set_running_or_notify_cancel()
        try:
            done.set_result(work(bridge.call))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
            # What ended the sync code counts, not what a library made of being ended.
            done.set_exception(bridge.reason or _told(error))

    # A daemon: a thread that computes without calling can't be ended, and must not keep the process.
    threading.Thread(target=run, name="bridge", daemon=True).start()
    try:
        return await asyncio.wrap_future(done)
    finally:
        bridge.close()
