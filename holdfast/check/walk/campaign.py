"""Many walks as one check: what a check that asks for `Walks` can do.

Walkers run beside each other, each on a world of its own, and share one record of coverage, so that each goes where the
others were not. The first finding ends them all and is made short. What a walk could not decide does not count: a walk
that ends because its target may be in too many states, or because the machine was late, is cut short and counted.

A check of walks speaks for many rows and decides only some of them (`Context.decided`): after a finding the rows of the
broken rule, else the rows whose rules were held up to the target at least once. Walks that could not judge decide none.

In an ordinary run walks are short: a number of steps that fits into the check's planned time, and no share of the pairs
to reach. Whoever wants more of them asks for walks alone.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self

from holdfast.check.context import Context
from holdfast.check.decisive import judged
from holdfast.check.evidence import WalkSeen
from holdfast.check.finding import Finding, Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.walk.against import Both, Lockstep
from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.draw import Drawer
from holdfast.check.walk.order import STEPS, Order
from holdfast.check.walk.play import Clock, Play
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.replay import Replay
from holdfast.check.walk.shrink import AT_ONCE, Found, Shrunk, shrink
from holdfast.check.walk.story import lines
from holdfast.check.walk.vocabulary import Broken, Model, S, Step, TooUncertain, World

# Seconds before a deadline that was missed in which a busy machine may have caused it.
_JUST_BEFORE = 1.0
# Pairs that the report names; the rest are counted.
_NAMED = 400


@dataclass(frozen=True)
class Ground(Generic[S]):
    """What a spec brings for one walk: the model, a fresh world, and the state that the world is in."""

    model: Model[S]
    world: World
    start: S


class _NoGround(Exception):  # noqa: N818 - no error of ours
    """Raised where a walk can't be performed again, because no fresh world could be had."""


Begin = Callable[[], Awaitable[Ground[Any]]]


@dataclass
class _Tally:
    """What the walks of one check come to."""

    walks: int = 0
    steps: int = 0
    cut: dict[str, int] = field(default_factory=dict)
    judged: dict[str, int] = field(default_factory=dict)
    found: Found | None = None
    # Why the last walk that could not even begin did not.
    not_begun: Inconclusive | None = None

    def add(self, play: Play[Any]) -> None:
        self.steps += len(play.steps)
        for row, times in play.possible.judged.items():
            self.judged[row] = self.judged.get(row, 0) + times

    def cut_short(self, why: str) -> None:
        self.cut[why] = self.cut.get(why, 0) + 1


class Walks:
    """The walks of one check."""

    def __init__(self, context: Context, T: SpecTime) -> None:
        self._context = context
        self._T = T
        self.order = context.walk_order or _usual(context)
        self.coverage = Coverage()
        self._tally = _Tally()
        self._clock = Clock(sleep=T.sleep)
        self._until = time.monotonic()
        self._differences: dict[str, None] = {}

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(context, await context.get(SpecTime))

    @property
    def short(self) -> bool:
        """Whether these are the walks of an ordinary run, beside other checks."""
        return self._context.walk_order is None

    async def run(self, begin: Begin, *, walkers: int, goal: bool = True) -> None:
        """Walks as the run has ordered. Raises Finding for what a walk found, Inconclusive for too little coverage.

        `begin` makes the ground for one walk; with one walker there is never more than one at a time. `goal` is false
        for walks that are too few to be held to a share of the pairs.
        """
        if self._context.lends is not None:
            await self._context.lends.lend(begin)
            return
        replay = self.order.replay
        if replay is not None:
            await self._replay(begin, replay)
        else:
            await self._walk(begin, walkers)
        found = self._tally.found
        shrunk = await self._shrink(found, begin, walkers) if found else None
        self._record(shrunk)
        if shrunk is not None:
            raise self._finding(shrunk)
        self._insist_on_coverage(goal=goal and replay is None)

    async def _replay(self, begin: Begin, replay: Replay) -> None:
        self._tally.found = await self._again(begin, replay.steps)
        self._tally.walks += 1

    async def _walk(self, begin: Begin, walkers: int) -> None:
        self._until = until = time.monotonic() + self.order.seconds
        tasks = [asyncio.ensure_future(self._walker(begin, each, walkers, until)) for each in range(walkers)]
        pending = set(tasks)
        try:
            # What one has found ends the others, which may be in the middle of a long wait.
            while pending and not self._tally.found:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _walker(self, begin: Begin, number: int, walkers: int, until: float) -> None:
        allowance = None if self.order.steps is None else -(-self.order.steps // walkers)
        for walk in range(1, 1_000_000):
            done = self.order.until_covered and bool(self.coverage.goal) and self.coverage.complete
            if time.monotonic() >= until or allowance == 0 or self._tally.found or done:
                return
            draws = random.Random(f"{self._context.seed}/{number}/{walk}")
            steps = STEPS if allowance is None else min(STEPS, allowance)
            if not await self._one(begin, draws, steps, until):
                return
            allowance = None if allowance is None else allowance - steps

    async def _one(self, begin: Begin, draws: random.Random, steps: int, until: float) -> bool:
        """Performs one walk; returns whether it could begin, because the next one could not either."""
        try:
            ground = await begin()
            play, world = await self._play(ground)
        except Inconclusive as undecided:
            self._tally.not_begun = undecided
            self._tally.cut_short(str(undecided))
            return False
        self.coverage.goal = ground.model.goal()
        drawer = Drawer.of(ground.model, world, self.coverage, draws)
        self._tally.walks += 1
        found = await self._performed(play, play.draw(drawer, steps, until))
        self._tally.add(play)
        self._tally.found = self._tally.found or found
        return True

    async def _again(self, begin: Begin, steps: Sequence[Step]) -> Found | None:
        play, _ = await self._play(await begin())
        found = await self._performed(play, play.repeat(steps))
        if self.order.replay is not None:
            self._tally.add(play)
        return found

    async def _performed(self, play: Play[Any], work: Awaitable[None]) -> Found | None:
        try:
            await work
        except Broken as broken:
            return self._unless_the_machine(play, broken)
        except TooUncertain:
            self._tally.cut_short("too many states were possible")
        except Inconclusive as undecided:
            self._tally.cut_short(str(undecided))
        finally:
            with contextlib.suppress(Exception):  # what is left open on the target says nothing about the walk
                await play.close()
        return None

    def _unless_the_machine(self, play: Play[Any], broken: Broken) -> Found | None:
        """A deadline that was missed by no more than the machine took from us or the target is not the target's."""
        since = time.monotonic() - broken.overdue - _JUST_BEFORE
        if broken.overdue and self._T.held_back(Moment(since, since)) >= broken.overdue:
            self._tally.cut_short("the machine was late")
            return None
        return Found(tuple(play.steps), broken, tuple(play.story))

    async def _play(self, ground: Ground[Any]) -> tuple[Play[Any], World]:
        """Returns the walk on this ground, and the world as draws see it; with a second target the walk is on both."""
        play = _alone(ground, self._clock)
        if (beside := self._context.beside) is None:
            return play, ground.world
        try:
            there = _alone(await beside.begin(), self._clock)
        except BaseException:
            await play.close()
            raise
        both = Lockstep(**vars(play), there=there, name=beside.name, differences=self._differences)
        return both, Both(both, there)

    async def _shrink(self, found: Found, begin: Begin, walkers: int) -> Shrunk:
        async def ground() -> Ground[Any]:
            try:
                return await begin()
            except Exception as error:
                raise _NoGround from error

        async def again(steps: Sequence[Step]) -> Found | None:
            try:
                return await self._again(ground, steps)
            except _NoGround:  # a target that was broken on the way, or is busy, takes nothing from what was found
                return None

        if self.order.replay is not None:
            return Shrunk(found, 1, 1)
        # What is left of the walking time may be used too, as far as it does not make a user wait for long.
        left = min(max(self._until - time.monotonic(), 0), self.order.shrink)
        until = time.monotonic() + self.order.shrink + left
        return await shrink(found, again, until, at_once=min(AT_ONCE, walkers))

    def _record(self, shrunk: Shrunk | None) -> None:
        """Notes what the walks reached, and says which rows they decide."""
        tally, coverage, context = self._tally, self.coverage, self._context
        never, replay = coverage.never, self._replay_of(shrunk) if shrunk else None
        context.walk = WalkSeen(
            walks=tally.walks,
            steps=tally.steps,
            cut=dict(tally.cut),
            pairs=len(coverage.reached),
            pairs_goal=len(coverage.goal),
            triples=len(coverage.triples),
            never=[str(pair) for pair in never[:_NAMED]],
            beyond=[str(pair) for pair in coverage.beyond[:_NAMED]],
            judged=dict(sorted(tally.judged.items())),
            story=list(replay.story) if replay else [],
            replay=replay.to_json() if replay else None,
            tries=shrunk.tries if shrunk else 0,
            failures=shrunk.failures if shrunk else 0,
            against=context.beside.name if context.beside else "",
            differences=list(self._differences),
        )
        rows = shrunk.found.broken.rows if shrunk else tuple(tally.judged)
        context.decided = tuple(dict.fromkeys(row.partition("#")[0] for row in rows))

    def _replay_of(self, shrunk: Shrunk) -> Replay:
        redact = self._context.transcript.secrets.redact
        story = tuple(redact(line) for line in lines(shrunk.found.story))
        catalogue, name = self._context.catalogue, self._context.spec.function.__name__
        return Replay(catalogue.key, name, self._context.seed, shrunk.found.steps, shrunk.found.broken.rows, story)

    def _finding(self, shrunk: Shrunk) -> Finding:
        broken, many = shrunk.found.broken, len(shrunk.found.steps)
        why = f"in a walk of {many} steps"
        if not shrunk.repeatable and shrunk.tries:
            why += f", which did not fail again in {shrunk.tries} tries"
        if broken.rules:
            why += f"; broken: {'; '.join(dict.fromkeys(rule.expected for rule in broken.rules))}"
        if broken.beside:
            why += f"; {broken.beside}"
        return Finding(broken.expected, broken.seen, why, late=broken.late)

    def _insist_on_coverage(self, *, goal: bool) -> None:
        tally, coverage = self._tally, self.coverage
        if not tally.walks or not tally.judged:
            raise tally.not_begun or Inconclusive("no step of any walk could be judged")
        judged()
        if goal and coverage.share < self.order.goal:
            self._context.decided = ()
            reached = f"{len(coverage.reached)} of {len(coverage.goal)} pairs"
            raise Inconclusive(f"the walks reached {reached}, {self.order.goal:.0%} were the goal")


def _alone(ground: Ground[S], clock: Clock) -> Play[S]:
    return Play(ground.model, ground.world, Possible(ground.model, [ground.start]), clock)


def _usual(context: Context) -> Order:
    """The short walk of an ordinary run: as long as the check plans to wait."""
    planned = context.timings.evaluate(context.spec.waits)
    return Order(seconds=planned, shrink=planned / 2, steps=context.spec.walk_steps)
