"""Carries a schedule out, keeps a log of what was in force when, and leaves nothing behind.

What must hold: when `run` returns or raises, every fault that was begun is healed, or its error says that it is not.

Each step is a task: it waits for its time, puts its fault on, lets it last from when it is in force, and heals it. What
the machine takes for that (a process that has to start) is on top of the schedule's time, so steps that exclude each
other wait for each other here as well, by a lock for each subject and slot. A step that comes after another waits for
what really happened to it, not for the planned time.

The log has an entry (a spell) for a step from before its fault is put on: a fault that was put on in part is healed
too. When an action fails or the run is cancelled, the other steps are cancelled, then every spell that is not healed is
healed, the last first, before the error goes on. A second cancel can't stop that; each heal has a deadline instead.
What can't be healed is added to the error as a note.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.chaos.schedules.kinds import KINDS, Kind
from holdfast.chaos.schedules.schedule import Schedule, Since, Step
from holdfast.chaos.schedules.validate import validate
from holdfast.check.finding import HarnessError

HEAL_DEADLINE = 30.0


class Actions(Protocol):
    """Puts faults on and heals them; each call returns once the fault is in force, or gone."""

    async def inject(self, step: Step) -> None: ...

    async def heal(self, step: Step) -> None:
        """Heal the fault of a step; called also if it was put on in part, not at all, or was healed before."""


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class MonotonicClock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FaultError(HarnessError):
    """A fault could not be put on or healed; the target can't be judged under it."""

    def __init__(self, step: Step, verb: str, cause: BaseException) -> None:
        self.step = step
        reason = str(cause) or type(cause).__name__
        super().__init__(f"step {step.name}: could not {verb} {step.what()} on {step.on}: {reason}")


@dataclass
class Spell:
    """When one step was asked for, in force and healed, in the clock's seconds; None: that did not happen."""

    step: Step
    asked: float
    in_force: float | None = None
    healing: float | None = None
    healed: float | None = None
    trouble: str = ""


@dataclass
class Log:
    """Spells in the order in which they were asked for; it can be read at any time, also after a cancelled run."""

    schedule: Schedule
    started: float = 0.0
    ended: float | None = None
    spells: list[Spell] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Return whether every step was carried out and healed without trouble."""
        return len(self.spells) == len(self.schedule.steps) and all(
            spell.healed is not None and not spell.trouble for spell in self.spells
        )


async def run(
    schedule: Schedule,
    actions: Actions,
    clock: Clock,
    log: Log | None = None,
    *,
    known: Mapping[str, Kind] = KINDS,
    heal_deadline: float = HEAL_DEADLINE,
) -> Log:
    """Carry the whole schedule out, to the end of its duration; return the log.

    Pass a `log` to see what happened in a run that is cancelled or fails.
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
    """Wait for the healing whatever cancels us meanwhile; each heal has a deadline, so this ends."""
    task = asyncio.ensure_future(healing)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue  # the caller raises the first error when all is healed
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
        if failed:  # raised outside of the handler, which would wrap it in a group again
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
        """Heal what is not healed yet, the last first; return what could not be healed."""
        left = []
        for spell in reversed(self.log.spells):
            if spell.healed is None:
                try:
                    await self._heal(spell)
                except FaultError as error:
                    left.append(str(error))
        return left
