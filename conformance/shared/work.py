"""Work of a check that does not run one step after the other: at once, meanwhile, until it is so, all the while.

Whatever is started here ends with the check at the latest: it goes on the check's own stack. Waiting follows one rule
(`comes`): a thing that happens within the suite's bound holds, one that happens later warns, and after `T.never(bound)`
it counts as never happening, which is a finding.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, TypeVar

from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import POLL, SpecTime
from holdfast.check.timeline import Moment
from holdfast.target.deployment import Deployment

R = TypeVar("R")


class Work:
    """A check's context, time and deployment, and what it does with several things at a time.

    A spec's driver sets `look_every`, the seconds between two looks where a look is costly; `at_once`, how many calls
    may be in flight unless a check says otherwise (None: all); and `settled`, the timing by which counters and logs
    show what was answered.
    """

    look_every: ClassVar[float] = POLL
    at_once: ClassVar[int | None] = None
    settled: ClassVar[str] = ""

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        self.context = context
        self.T = T
        self.deployment: Deployment = deployment or context.deployment

    async def parallel(self, work: Iterable[Callable[[], Awaitable[R]]], at_once: int | None = None) -> list[R]:
        """Starts all of it together, but at most `at_once` at a time; returns the results in order.

        If one raises, the others go on until the check ends.
        """
        calls = list(work)
        gate = asyncio.Semaphore(at_once or self.at_once or max(1, len(calls)))

        async def one(call: Callable[[], Awaitable[R]]) -> R:
            async with gate:
                return await call()

        tasks = [asyncio.ensure_future(one(call)) for call in calls]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            self.context.stack.push_async_callback(_end, *tasks)
            raise

    def beside(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Starts work that goes on beside the check; it is cancelled when the check ends."""
        task = asyncio.ensure_future(work)
        self.context.stack.push_async_callback(_end, task)
        return task

    async def settles(self, look: Callable[[], Awaitable[R]], *legal: Any, why: str) -> R:
        """Polls until `look` returns a legal value, and returns it. Raises Finding after `T.never(settled)`.

        Counters and log lines may be a moment behind the answer that they belong to.
        """
        end = time.monotonic() + self.never(self.settled)
        while (seen := await look()) not in legal and time.monotonic() < end:
            await self.T.sleep(2 * POLL, why)
        expect(seen, *legal, why=why)
        return seen

    def never(self, bound: str) -> float:
        """Returns the seconds after which what this bound waits for counts as never happening."""
        return self.T.never(bound)

    async def comes(
        self,
        look: Callable[[], Awaitable[R | None]],
        bound: str,
        *,
        since: Moment | None = None,
        what: str,
        every: float | None = None,
    ) -> tuple[R, Moment]:
        """Polls until `look` returns a value, and judges the time against the bound; returns the value, and when.

        Warns past the bound; raises Finding after `T.never(bound)`.
        """
        start = since or self.T.now()
        value, seen = await self.T.until(
            look, give_up=self.never(bound), since=start, what=what, every=every or self.look_every
        )
        self.T.at_most(bound, since=start, seen=seen, what=what)
        return value, seen

    async def throughout(
        self, look: Callable[[], Awaitable[Any]], seconds: float, why: str, *, every: float | None = None
    ) -> int:
        """Calls `look` again and again for `seconds`; it raises what it finds. Returns how often it was called.

        Raises Inconclusive if there was time for fewer than two looks.
        """
        end, looks = time.monotonic() + seconds, 0
        self.context.say_waiting(why, seconds)
        with self.context.step(f"watch {seconds:.2f} s: {why}"):
            while time.monotonic() < end:
                await look()
                looks += 1
                await asyncio.sleep(every or self.look_every)
        if looks < 2:
            raise Inconclusive(f"only {looks} samples in {seconds:.1f} s: {why}")
        return looks

    @asynccontextmanager
    async def meanwhile(
        self, look: Callable[[], Awaitable[Any]], why: str, *, every: float | None = None
    ) -> AsyncIterator[None]:
        """Calls `look` again and again while the block runs; what it finds is raised at the end of the block.

        Raises Inconclusive if there was time for fewer than two looks.
        """
        over, looks = asyncio.Event(), 0

        async def watch() -> None:
            nonlocal looks
            while not over.is_set():
                await look()
                looks += 1
                await asyncio.sleep(every or self.look_every)

        watching = self.beside(watch())
        try:
            yield
        finally:
            over.set()
        await watching
        if looks < 2:
            raise Inconclusive(f"only {looks} samples: {why}")


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
