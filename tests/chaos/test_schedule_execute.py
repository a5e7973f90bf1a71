"""Schedules carried out, on a clock that jumps and with actions that take notes."""

import asyncio
import heapq
import math
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

import pytest

from holdfast.chaos.schedules.draw import draw
from holdfast.chaos.schedules.execute import FaultError, Log, MonotonicClock, run
from holdfast.chaos.schedules.kinds import KINDS
from holdfast.chaos.schedules.schedule import Place, Schedule, ScheduleError, Since, Step, Subject, Time

R = TypeVar("R")
START = 1000.0
# More turns of the loop than any chain of tasks here needs to come to rest.
TURNS = 60


class JumpingClock:
    """When nothing else is left to do, it jumps to whoever wakes first."""

    def __init__(self) -> None:
        self.at = START
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = count()

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not math.isinf(seconds):
            heapq.heappush(self._sleepers, (self.at + seconds, next(self._number), waker))
        await waker

    async def live(self, work: Coroutine[Any, Any, R], until: float | None = None) -> R:
        """What the work gives; `until`: cancel it at this second."""
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if self._sleepers:
                at, _, waker = heapq.heappop(self._sleepers)
                if until is not None and at >= START + until:
                    self.at, until = START + until, None
                    heapq.heappush(self._sleepers, (at, next(self._number), waker))
                    task.cancel()
                elif not waker.done():
                    self.at = at
                    waker.set_result(None)
        return await task


class Notes:
    """Notes what it was asked to do and when; takes time for it; fails where `failing` says so."""

    def __init__(self, clock: JumpingClock, **takes: float) -> None:
        self.clock = clock
        self.takes = takes
        self.failing: dict[str, int] = {}
        self.noted: list[tuple[float, str, str]] = []

    async def inject(self, step: Step) -> None:
        await self._do("inject", step)

    async def heal(self, step: Step) -> None:
        await self._do("heal", step)

    async def _do(self, verb: str, step: Step) -> None:
        self.noted.append((self.clock.now() - START, verb, step.name))
        what = f"{verb}_{step.name}"
        await self.clock.sleep(self.takes.get(what, 0.0))
        if self.failing.get(what, 0):
            self.failing[what] -= 1
            raise OSError(f"{what} is broken")

    def verbs(self) -> list[str]:
        return [f"{verb} {name}" for _, verb, name in self.noted]


def step(name: str, at: float, lasts: float | None, fault: str = "cut", on: str = "", after: str | None = None) -> Step:
    subject = Subject.parse(on or f"link:{name}")
    return Step(name, subject, fault, {}, Time(at), Time(lasts) if lasts else None, after)


def schedule(*steps: Step, duration: float = 60.0) -> Schedule:
    return Schedule("test", Time(duration), steps)


async def test_faults_come_and_go_at_their_times_and_the_run_lasts_to_the_end() -> None:
    clock = JumpingClock()
    notes = Notes(clock)
    log = await clock.live(
        run(schedule(step("a", 5, 20), step("b", 10, 2), step("c", 12, None, "reset")), notes, clock)
    )
    assert sorted(notes.noted) == [  # what falls on one moment has no order
        (5.0, "inject", "a"),
        (10.0, "inject", "b"),
        (12.0, "heal", "b"),
        (12.0, "inject", "c"),
        (25.0, "heal", "a"),
    ]
    assert (log.started, log.ended, log.clean) == (START, START + 60.0, True)


async def test_a_fault_lasts_from_when_it_is_in_force_and_the_log_has_all_four_moments() -> None:
    clock = JumpingClock()
    log = await clock.live(run(schedule(step("a", 5, 10)), Notes(clock, inject_a=1.5, heal_a=0.5), clock))
    [spell] = log.spells
    assert (spell.asked, spell.in_force, spell.healing, spell.healed) == (1005.0, 1006.5, 1016.5, 1017.0)
    assert (spell.step.name, f"{spell.step.what()} on {spell.step.on}") == ("a", "cut on link:a")
    assert (log.started, spell.trouble) == (START, "")


async def test_a_step_after_another_counts_from_what_really_happened() -> None:
    clock = JumpingClock()
    notes = Notes(clock, inject_a=1.0, heal_a=2.0)
    healed = step("b", 3, 1, after="a")
    early = Step("c", Subject(Place.LINK, "c"), "cut", {}, Time(3), Time(1), "a", Since.IN_FORCE)
    await clock.live(run(schedule(healed, early, step("a", 5, 10)), notes, clock))
    assert [(at, name) for at, verb, name in notes.noted if verb == "inject"] == [(5.0, "a"), (9.0, "c"), (21.0, "b")]


async def test_faults_that_exclude_each_other_wait_when_one_is_late() -> None:
    """Planned one after the other; the first takes long to heal, as a process does that has to start."""
    clock = JumpingClock()
    notes = Notes(clock, heal_first=3.0)
    planned = [step("first", 5, 5, on="link:x"), step("second", 10, 5, "refuse", on="link:x"), step("other", 10, 5)]
    await clock.live(run(schedule(*planned), notes, clock))
    assert (13.0, "inject", "second") in notes.noted
    assert (10.0, "inject", "other") in notes.noted


async def test_a_failing_inject_heals_everything_the_last_first() -> None:
    clock, log = JumpingClock(), Log(schedule())
    notes = Notes(clock, inject_c=1.0)
    notes.failing = {"inject_c": 1}
    planned = schedule(step("a", 1, 50), step("b", 2, 50), step("c", 3, 5), step("never", 30, 5))
    with pytest.raises(FaultError) as raised:
        await clock.live(run(planned, notes, clock, log))
    assert str(raised.value) == "step c: could not inject cut on link:c: inject_c is broken"
    assert isinstance(raised.value.__cause__, OSError)
    assert notes.verbs() == ["inject a", "inject b", "inject c", "heal c", "heal b", "heal a"]
    assert [spell.in_force for spell in log.spells] == [1001.0, 1002.0, None]
    assert log.spells[2].trouble == "OSError: inject_c is broken"
    assert not log.clean
    assert log.ended == 1004.0


async def test_a_cancelled_run_heals_everything_the_last_first() -> None:
    clock, log = JumpingClock(), Log(schedule())
    notes = Notes(clock, heal_b=2.0)
    planned = schedule(step("a", 1, 50), step("b", 2, 50), step("done", 3, 4))
    with pytest.raises(asyncio.CancelledError):
        await clock.live(run(planned, notes, clock, log), until=20.0)
    assert notes.verbs() == ["inject a", "inject b", "inject done", "heal done", "heal b", "heal a"]
    assert [spell.healed for spell in log.spells] == [1022.0, 1022.0, 1007.0]
    assert (log.spells[0].in_force, log.spells[0].healing) == (1001.0, 1022.0)


async def test_a_fault_that_is_just_being_put_on_is_healed_when_the_run_is_cancelled() -> None:
    clock, log = JumpingClock(), Log(schedule())
    notes = Notes(clock, inject_a=10.0)
    with pytest.raises(asyncio.CancelledError):
        await clock.live(run(schedule(step("a", 1, 5)), notes, clock, log), until=4.0)
    assert notes.verbs() == ["inject a", "heal a"]
    [spell] = log.spells
    assert (spell.asked, spell.in_force, spell.healed) == (1001.0, None, 1004.0)


async def test_a_second_cancel_does_not_keep_faults_in_force() -> None:
    clock = JumpingClock()
    notes = Notes(clock, heal_a=3.0, heal_b=3.0)
    task = asyncio.ensure_future(run(schedule(step("a", 1, 50), step("b", 2, 50)), notes, clock))

    async def impatient() -> None:
        await clock.sleep(21.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    helper = asyncio.ensure_future(impatient())
    with pytest.raises(asyncio.CancelledError):
        await clock.live(_follow(task), until=20.0)
    await clock.live(_follow(helper))
    assert notes.noted[2:] == [(20.0, "heal", "b"), (23.0, "heal", "a")]
    assert task.cancelled()


async def _follow(task: "asyncio.Future[R]") -> R:
    return await task


async def test_a_heal_that_fails_is_tried_again_while_the_rest_is_healed() -> None:
    clock, log = JumpingClock(), Log(schedule())
    notes = Notes(clock)
    notes.failing = {"heal_b": 1}
    with pytest.raises(FaultError, match="step b: could not heal cut on link:b"):
        await clock.live(run(schedule(step("a", 1, 50), step("b", 2, 5)), notes, clock, log))
    assert notes.verbs() == ["inject a", "inject b", "heal b", "heal b", "heal a"]
    assert [spell.healed for spell in log.spells] == [1007.0, 1007.0]
    assert not log.clean


async def test_what_can_not_be_healed_is_told_and_keeps_nobody_from_healing_the_rest() -> None:
    clock, log = JumpingClock(), Log(schedule())
    notes = Notes(clock)
    notes.failing = {"heal_b": 9, "inject_c": 1}
    planned = schedule(step("a", 1, 50), step("b", 2, 50), step("c", 3, 5))
    with pytest.raises(FaultError, match="could not inject cut on link:c") as raised:
        await clock.live(run(planned, notes, clock, log))
    assert raised.value.__notes__ == ["step b: could not heal cut on link:b: heal_b is broken"]
    assert notes.verbs()[-3:] == ["heal c", "heal b", "heal a"]
    assert [spell.healed is None for spell in log.spells] == [False, True, False]


async def test_what_fails_on_being_stopped_is_told_too() -> None:
    clock, log = JumpingClock(), Log(schedule())

    class Clumsy(Notes):
        async def inject(self, step: Step) -> None:
            try:
                await super().inject(step)
            except asyncio.CancelledError:
                raise OSError(f"{step.name} fell over") from None

    notes = Clumsy(clock, inject_b=9.0)
    notes.failing = {"inject_a": 1}
    planned = schedule(step("b", 1, 5), step("a", 2, 5))
    with pytest.raises(FaultError, match="inject_a is broken") as raised:
        await clock.live(run(planned, notes, clock, log))
    assert raised.value.__notes__ == ["step b: could not inject cut on link:b: b fell over"]
    assert notes.verbs() == ["inject b", "inject a", "heal a", "heal b"]
    assert log.schedule is planned


async def test_a_heal_that_hangs_has_a_deadline() -> None:
    clock, log = JumpingClock(), Log(schedule())
    notes = Notes(clock, heal_a=math.inf)
    with pytest.raises(FaultError, match="could not heal cut on link:a: TimeoutError"):
        await clock.live(run(schedule(step("a", 1, 5)), notes, clock, log, heal_deadline=0.01))
    assert log.spells[0].healed is None


async def test_an_unsound_schedule_is_not_begun() -> None:
    clock = JumpingClock()
    notes = Notes(clock)
    with pytest.raises(ScheduleError, match="lasts: missing"):
        await clock.live(run(schedule(step("a", 1, None)), notes, clock))
    assert notes.noted == []


@pytest.mark.parametrize("seed", range(8))
async def test_drawn_schedules_are_carried_out_whole(seed: int) -> None:
    clock = JumpingClock()
    notes = Notes(clock)
    subjects = [Subject(place, name) for place in Place for name in "ab"]
    drawn = draw(seed, 6, subjects, KINDS, 60.0).scaled(0.2)
    log = await clock.live(run(drawn, notes, clock))
    assert log.clean
    lasting = sum(one.lasts is not None for one in drawn.steps)
    assert [len(drawn.steps), lasting] == [
        sum(verb == name for _, verb, _ in notes.noted) for name in ("inject", "heal")
    ]
    for spell, window in zip(log.spells, sorted(drawn.planned(), key=lambda window: window.start), strict=True):
        assert spell.asked - START == pytest.approx(window.start)
        assert (spell.healed or 0.0) - START == pytest.approx(window.end)


async def test_on_the_real_clock_no_fault_is_early_or_short() -> None:
    clock = MonotonicClock()
    notes = Notes(JumpingClock())
    notes.clock = clock  # type: ignore[assignment]  # any clock that sleeps will do
    log = await asyncio.wait_for(run(schedule(step("a", 0.05, 0.1), duration=0.2), notes, clock), 30.0)
    [spell] = log.spells
    assert spell.asked - log.started >= 0.05
    assert spell.in_force is not None
    assert spell.healing is not None
    assert spell.healing - spell.in_force >= 0.0999
    assert log.ended is not None
    assert log.ended - log.started >= 0.2
