"""Things that walks use one after the other, such as a deployment that a walk needs for itself."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Turns(Generic[T]):
    """At most so many of them, each built when it is first needed; `build` is told how many there were before."""

    def __init__(self, build: Callable[[int], Awaitable[T]], most: int) -> None:
        self._build = build
        self._most = most
        self._built = 0
        self._idle: asyncio.Queue[T] = asyncio.Queue()

    async def take(self) -> T:
        if self._idle.empty() and self._built < self._most:
            self._built += 1
            return await self._build(self._built - 1)
        return await self._idle.get()

    async def begin(self, work: Callable[[T, Callable[[], None]], Awaitable[R]]) -> R:
        """Takes one and begins work on it, which is told what gives it back; if it can't begin, that is done here."""
        one = await self.take()
        done = partial(self.give_back, one)
        try:
            return await work(one, done)
        except BaseException:
            done()
            raise

    def give_back(self, one: T) -> None:
        self._idle.put_nowait(one)
