"""Makes a finding short: the same walk with steps left out, performed again on fresh worlds, as long as it still fails.

Steps are left out in blocks, halves first and single steps last (delta debugging). The candidates of one size are
independent, so several are tried at once: most of their time is the target's own waiting. A candidate counts if a rule
of the same rows breaks again; another finding is another story. A walk that does not fail a second time is kept as it
is, and said to be so.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from holdfast.check.walk.play import Clock
from holdfast.check.walk.story import Told
from holdfast.check.walk.vocabulary import Broken, Step

AT_ONCE = 6
# How often the whole walk is performed again, to see whether it fails more than once.
AS_IT_IS = 3


@dataclass(frozen=True)
class Found:
    """A walk that broke a rule with its last step."""

    steps: tuple[Step, ...]
    broken: Broken
    story: tuple[Told, ...]


# Performs steps on a fresh world; returns what was found, None if nothing was.
Again = Callable[[Sequence[Step]], Awaitable[Found | None]]


@dataclass(frozen=True)
class Shrunk:
    found: Found
    # How often the walk, or a part of it, was performed again, and how often it failed.
    tries: int
    failures: int

    @property
    def repeatable(self) -> bool:
        return self.failures > 0


async def shrink(
    found: Found, again: Again, until: float, *, at_once: int = AT_ONCE, clock: Clock | None = None
) -> Shrunk:
    """Returns the shortest walk found by then that breaks the same rows."""
    clock = clock or Clock()
    best, tries, failures = found, 0, 0
    size = len(found.steps)
    while size >= 1 and clock.now() < until:
        candidates = _candidates(best.steps, size)
        shorter, tried, failed = await _first(candidates, again, best, until, at_once, clock)
        tries, failures = tries + tried, failures + failed
        if shorter is not None:
            whole = size >= len(best.steps)
            best = shorter
            size = len(best.steps) // 2 if whole else min(size, len(best.steps))
        elif size == len(found.steps) and best is found:
            return Shrunk(best, tries, failures)
        else:
            size //= 2
    return Shrunk(best, tries, failures)


def _candidates(steps: Sequence[Step], size: int) -> list[tuple[Step, ...]]:
    """Returns the walk without each block of this size; the walk itself, some times more, for a block of all of it."""
    if size >= len(steps):
        return [tuple(steps)] * AS_IT_IS
    places = range(0, len(steps) - 1, size)  # the last step is the one that showed it
    return [(*steps[:at], *steps[min(at + size, len(steps) - 1) :]) for at in places]


async def _first(
    candidates: Sequence[tuple[Step, ...]], again: Again, best: Found, until: float, at_once: int, clock: Clock
) -> tuple[Found | None, int, int]:
    """Tries the candidates, several at a time; returns the first that fails in the same way, tries and failures."""
    tried = 0
    for at in range(0, len(candidates), at_once):
        if clock.now() >= until:
            break
        some = candidates[at : at + at_once]
        results = await _by(until - clock.now(), [again(each) for each in some])
        tried += len(some)
        same = [each for each in results if each is not None and set(each.broken.rows) & set(best.broken.rows)]
        if same:
            return min(same, key=lambda each: len(each.steps)), tried, len(same)
    return None, tried, 0


async def _by(left: float, work: Sequence[Awaitable[Found | None]]) -> list[Found | None]:
    """Returns what has ended within so many seconds; the rest is cancelled: a try may wait longer than is left."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, timeout=None if math.isinf(left) else max(left, 0))
        return [task.result() for task in tasks if task in done]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
