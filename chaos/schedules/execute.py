"""Carries a schedule out, keeps a log of what was in force when, and leaves nothing behind.

Each step is a task: it waits for its time, puts its fault on, lets it last from when it is in force, and heals it. What
the machine takes for that (a process that has to start) is on top of the schedule's time, so steps that exclude each
other wait for each other here as well. When an action fails or the run is cancelled, everything that may be in force is
healed, the last first, before the error goes on.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.chaos.schedule import Schedule, Since, Step
from holdfast.chaos.schedules.kinds import KINDS, Kind
from holdfast.chaos.schedules.validate import validate
from holdfast.finding import PartError

HEAL_DEADLINE = 30.0


class Actions(Protocol):
    """What really puts faults on. Each returns once the fault is in force, or gone."""

    async def inject(self, step: Step) -> None: ...

    async def heal(self, step: Step) -> None:
        """Also of a fault that was put on in part, not at all, or healed before."""


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class MonotonicClock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FaultError(PartError):
    """A fault could not be put on or healed; nothing can be said about the target under it."""

    def __init__(self, step: Step, verb: str, cause: BaseException) -> None:
        self.step = step
        reason = str(cause) or type(cause).__name__
        super().__init__(f"step {step.name}: could not {verb} {step.what()} on {step.on}: {reason}")


@dataclass
class Spell:
    """What became of one step, in the clock's seconds; None: it did not come to that."""

    step: Step
    asked: float
    in_force: float | None = None
    healing: float | None = None
    healed: float | None = None
    trouble: str = ""

    @property
    def sure(self) -> tuple[float, float] | None:
        """When the fault was certainly there."""
        if self.in_force is None or self.healing is None:
            return None
        return self.in_force, self.healing

    @property
    def possible(self) -> tuple[float, float | None]:
        """When it may have been there; without an end if nobody knows that it is gone."""
        return self.asked, self.healed


@dataclass
class Log:
    """Spells in the order in which they were asked for. It can be read at any time, also after a cancelled run."""

    schedule: Schedule
    started: float = 0.0
    ended: float | None = None
    spells: list[Spell] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Every step came about, and is over."""
        return len(self.spells) == len(self.schedule.steps) and all(
            spell.healed is not None and not spell.trouble for spell in self.spells
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """For the event stream and for the shades of a timeline: seconds since the schedule began."""
        for spell in self.spells:
            yield {
                "step": spell.step.name,
                "fault": spell.step.fault,
                "subject": spell.step.on.name,
                "text": f"{spell.step.what()} on {spell.step.on}",
                "asked_s": self._since(spell.asked),
                "in_force_s": self._since(spell.in_force),
                "healing_s": self._since(spell.healing),
                "healed_s": self._since(spell.healed),
                "trouble": spell.trouble,
            }

    def _since(self, at: float | None) -> float | None:
        return None if at is None else round(at - self.started, 4)


async def run(
    schedule: Schedule,
    actions: Actions,
    clock: Clock,
    log: Log | None = None,
    *,
    known: Mapping[str, Kind] = KINDS,
    heal_deadline: float = HEAL_DEADLINE,
) -> Log:
    """The whole schedule, to the end of its duration; of a scaled one, in the time of the run.

    Who wants to see the log of a run that was cancelled or failed brings one.
    """
    validate(schedule, known=known)
    kept = Log(schedule) if log is None else log
    kept.schedule = schedule
    execution = _Execution(schedule, actions, clock, kept, known, heal_deadline)
    try:
        await execution.perform()
    except BaseException as error:
        for trouble in await _undisturbed(execution.heal_open()):
            error.add_note(trouble)
        raise
    finally:
        kept.ended = clock.now()
    return kept


async def _undisturbed(healing: Coroutine[Any, Any, list[str]]) -> list[str]:
    """Whoever cancels us again waits until all is healed, too; each heal has its deadline."""
    task = asyncio.ensure_future(healing)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue  # the error that we are healing for is raised by the caller
    return task.result()


class _Execution:
    def __init__(
        self,
        schedule: Schedule,
        actions: Actions,
        clock: Clock,
        log: Log,
        known: Mapping[str, Kind],
        heal_deadline: float,
    ) -> None:
        self.schedule = schedule
        self.actions = actions
        self.clock = clock
        self.log = log
        self.known = known
        self.heal_deadline = heal_deadline
        self.slots: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self.moments = {(step.name, since): asyncio.Event() for step in schedule.steps for since in Since}

    async def perform(self) -> None:
        self.log.started = self.clock.now()
        failed: list[BaseException] = []
        try:
            async with asyncio.TaskGroup() as group:
                for step in self.schedule.steps:
                    group.create_task(self._perform(step))
        except* FaultError as errors:
            failed += errors.exceptions
        if failed:  # outside of the handler, which would make a group of it again
            first, *others = failed
            for other in others:
                first.add_note(str(other))
            raise first
        await self._sleep_until(self.log.started + self.schedule.duration.seconds)

    async def _perform(self, step: Step) -> None:
        await self._its_time(step)
        async with self.slots[str(step.on), self.known[step.fault].slot]:
            spell = await self._inject(step)
            if step.lasts is not None:
                await self._sleep_until((spell.in_force or 0.0) + step.lasts.seconds)
                await self._heal(spell)
        self.moments[step.name, Since.HEALED].set()

    async def _its_time(self, step: Step) -> None:
        start = self.log.started
        if step.after is not None:
            await self.moments[step.after, step.since].wait()
            start = self.clock.now()
        await self._sleep_until(start + step.at.seconds)

    async def _sleep_until(self, at: float) -> None:
        while (left := at - self.clock.now()) > 0:
            await self.clock.sleep(left)

    async def _inject(self, step: Step) -> Spell:
        spell = Spell(step, self.clock.now())
        self.log.spells.append(spell)
        try:
            await self.actions.inject(step)
        except Exception as error:
            spell.trouble = f"{type(error).__name__}: {error}"
            raise FaultError(step, "inject", error) from error
        spell.in_force = self.clock.now()
        if step.lasts is None:
            spell.healing = spell.healed = spell.in_force
        self.moments[step.name, Since.IN_FORCE].set()
        return spell

    async def _heal(self, spell: Spell) -> None:
        if spell.healing is None:
            spell.healing = self.clock.now()
        try:
            async with asyncio.timeout(self.heal_deadline):
                await self.actions.heal(spell.step)
        except Exception as error:
            spell.trouble = f"{type(error).__name__}: {error}"
            raise FaultError(spell.step, "heal", error) from error
        spell.healed = self.clock.now()

    async def heal_open(self) -> list[str]:
        """The last first; what can't be healed keeps nobody from healing the rest. Says what is left."""
        left = []
        for spell in reversed(self.log.spells):
            if spell.healed is None:
                try:
                    await self._heal(spell)
                except FaultError as error:
                    left.append(str(error))
        return left
