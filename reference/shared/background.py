"""What every process of a reference node has besides its components: background tasks, and the stop by a signal."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast.reference.shared.loglines import LogLines

Result = TypeVar("Result")


class Background:
    """Tasks that run beside the requests. None may fail silently: one that fails stops the node, with exit code 1."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.failed = False
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Result]) -> "asyncio.Task[Result]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def forgives(self, error: BaseException) -> bool:  # noqa: ARG002  # nodes that can go on override it
        """Tells whether the node goes on after this failure of a task."""
        return False

    def stop_on_signals(self) -> None:
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, self.stopping.set)

    def cancel_work(self) -> list["asyncio.Task[Any]"]:
        """Cancels all tasks and returns them, for a caller that waits until they have ended."""
        for task in self._tasks:
            task.cancel()
        return list(self._tasks)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None or self.forgives(error):
            return
        logging.getLogger(__name__).error("A background task failed.", exc_info=error)
        self.failed = True
        self.stopping.set()


async def with_library_logs(work: Coroutine[Any, Any, None], log: Callable[[str, str], None]) -> None:
    """Runs the work while warnings of libraries are written by `log`, among the node's own lines."""
    handler = LogLines(log)
    logging.getLogger().addHandler(handler)
    try:
        await work
    finally:
        logging.getLogger().removeHandler(handler)
