"""One walk: steps performed on a fresh world, and everything that can be seen compared with the model after each."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from holdfast.check.walk.draw import AFTER, BEFORE, WAIT, Drawer
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.story import Told
from holdfast.check.walk.vocabulary import Broken, Command, Model, S, Seen, Step, World

Sleep = Callable[[float, str], Awaitable[None]]


@dataclass
class Clock:
    """Reads and passes time; tests put their own here."""

    now: Callable[[], float] = time.monotonic
    sleep: Sleep | None = None

    async def until(self, when: float, why: str) -> None:
        if self.sleep is not None and when > self.now():
            await self.sleep(when - self.now(), why)


@dataclass
class Play(Generic[S]):
    """A walk in progress. `steps` are those performed so far, the one that broke a rule being the last."""

    model: Model[S]
    world: World
    possible: Possible[S]
    clock: Clock
    steps: list[Step] = field(default_factory=list)
    story: list[Told] = field(default_factory=list)
    # What was sent or looked at in the last step, and what was seen.
    said: list[tuple[str, str]] = field(default_factory=list)

    async def draw(self, drawer: Drawer[S], steps: int, until: float) -> None:
        """Performs drawn steps, `steps` of them or until then. Raises Broken."""
        for _ in range(steps):
            left = until - self.clock.now()
            if left <= 0:
                return
            step = drawer.draw(self.possible, self.steps, self.clock.now(), left)
            if step is None:
                return
            before = self.model.kind(self.steps[-1][0]) if self.steps else "begin"
            pairs = [drawer.pair(self.possible, command) for command in step]
            for pair in pairs:
                drawer.coverage.visit(pair, before)
            await self.perform(step)
            for pair, command in zip(pairs, step, strict=True):
                if command.name != WAIT:
                    drawer.coverage.led(pair, drawer.pair(self.possible, command).situation)

    async def repeat(self, steps: Sequence[Step]) -> None:
        """Performs given steps; those that make no sense here, because others were left out, are skipped."""
        for step in steps:
            if all(self.makes_sense(command) for command in step):
                await self.perform(step)

    async def perform(self, step: Step) -> None:
        """Performs one step and compares all that can be seen. Raises Broken."""
        self.steps.append(step)
        self.said = []
        told = Told(len(self.steps), " while ".join(map(self.describe, step)))
        self.story.append(told)
        if step[0].name == WAIT:
            await self._wait(step[0])
        else:
            await self._send(step, told)
        for look in self.model.looks(self.possible.states, step):
            await self._look(look, told)

    async def close(self) -> None:
        await self.world.close()

    def describe(self, command: Command) -> str:
        if command.name == WAIT:
            return f"wait until just {command.get('side')} {command.get('for')}"
        return self.model.describe(command)

    def makes_sense(self, command: Command) -> bool:
        if command.name == WAIT:
            return any(timer.name == command.get("for") for timer in self.possible.timers())
        return self.world.can(command) and self.possible.ready(command)

    async def _wait(self, command: Command) -> None:
        timer = next(timer for timer in self.possible.timers() if timer.name == command.get("for"))
        before = command.get("side") == "before"
        await self.clock.until(timer.earliest - BEFORE if before else timer.latest + AFTER, self.describe(command))

    async def _send(self, step: Step, told: Told) -> None:
        calls = list(zip(step, await _at_once([self.world.do(command) for command in step]), strict=True))
        self.said += [(self.describe(command), seen.text) for command, seen in calls]
        told.seen = "; ".join(seen.text for _, seen in calls)
        told.took = calls[0][1].sent, calls[-1][1].received
        try:
            told.legal = self.possible.take(*calls)
        except Broken as broken:
            told.legal, told.broken = broken.expected, True
            raise

    async def _look(self, look: Command, told: Told) -> None:
        seen = await self.world.do(look)
        self.said.append((self.describe(look), seen.text))
        try:
            self.possible.take((look, seen))
        except Broken as broken:
            self.story.append(Told(told.number, self.describe(look), broken.expected, seen.text, broken=True))
            raise


async def _at_once(calls: Sequence[Awaitable[Seen]]) -> list[Seen]:
    return list(await asyncio.gather(*calls)) if len(calls) > 1 else [await calls[0]]
