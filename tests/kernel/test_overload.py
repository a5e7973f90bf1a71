"""A machine that can't keep up: what is found then proves nothing where state lapses, and no more checks begin."""

import asyncio
import time
from typing import Self

import pytest

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.finding import Unsafe
from holdfast.spec.verdict import Verdict
from tests.kernel.attempts import Calm, outcome_of


class Starved(Calm):
    """Its three processes stand in the run queue all the time."""

    def run_queue_wait(self) -> float:
        return 3 * time.monotonic()


class Lapsing:
    @classmethod
    async def provide(cls, context: Context) -> Self:
        context.lapses = True
        return cls()


async def _finds_something() -> None:
    await asyncio.sleep(1.1)
    raise AssertionError("a member is missing from the list")


async def finds_in_what_lapses(lapsing: Lapsing) -> None:  # asked for by its annotation
    await _finds_something()


async def finds_two_leaders_in_what_lapses(lapsing: Lapsing) -> None:
    await asyncio.sleep(1.1)
    raise Unsafe(["one leader in a term"], "two")


async def finds_in_what_lasts() -> None:
    await _finds_something()


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (finds_in_what_lapses, Verdict.INCONCLUSIVE),
        (finds_in_what_lasts, Verdict.FAIL),
        (finds_two_leaders_in_what_lapses, Verdict.FAIL),
    ],
)
def test_an_overloaded_machine_excuses_findings_only_where_state_lapses(check: object, verdict: Verdict) -> None:
    assert asyncio.run(verdict_of(check, Starved(), Audit())) is verdict


def stand_still(seconds: float) -> None:
    time.sleep(seconds)  # the whole loop, as a machine that freezes does


async def finds_after_a_moment() -> None:
    stand_still(0.3)
    raise AssertionError("a member is missing from the list")


async def finds_after_standing_still() -> None:
    await asyncio.sleep(0.05)
    stand_still(1.2)
    raise AssertionError("a member is missing from the list")


async def finds_two_leaders_after_standing_still() -> None:
    stand_still(1.2)
    raise Unsafe(["one leader in a term"], "two")


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (finds_after_standing_still, Verdict.INCONCLUSIVE),
        (finds_after_a_moment, Verdict.FAIL),
        (finds_two_leaders_after_standing_still, Verdict.FAIL),
    ],
)
def test_a_harness_that_stood_still_blames_nobody(check: object, verdict: Verdict) -> None:
    async def run() -> Verdict:
        audit = Audit()
        audit.start()
        await asyncio.sleep(0.05)
        try:
            return await verdict_of(check, Calm(), audit)
        finally:
            audit.stop()

    assert asyncio.run(run()) is verdict


class WithALateStub:
    @classmethod
    async def provide(cls, context: Context) -> Self:
        context.late_stub = "spy1, a peer played by the suite, was itself 0.90 s late"
        return cls()


async def finds_beside_a_late_stub(given: WithALateStub) -> None:
    raise AssertionError("a did not start")


async def finds_two_leaders_beside_a_late_stub(given: WithALateStub) -> None:
    raise Unsafe(["one leader in a term"], "two")


@pytest.mark.parametrize(
    ("check", "verdict"),
    [(finds_beside_a_late_stub, Verdict.INCONCLUSIVE), (finds_two_leaders_beside_a_late_stub, Verdict.FAIL)],
)
def test_a_node_that_gave_up_our_late_stub_is_not_blamed(check: object, verdict: Verdict) -> None:
    assert asyncio.run(verdict_of(check, Calm(), Audit())) is verdict


def test_a_stall_is_told_with_what_the_loop_worked_meanwhile() -> None:
    async def run() -> list[dict[str, float]]:
        audit = Audit()
        audit.start()
        for hold in (stand_still, work):
            await asyncio.sleep(0.05)
            hold(0.2)
            await asyncio.sleep(0.05)
        audit.stop()
        return sorted(audit.report()["longest_stalls"], key=lambda stall: float(stall["at_s"]))

    idle, busy = asyncio.run(run())[:2]
    assert idle["worked_ms"] < idle["ms"] / 2
    assert busy["worked_ms"] > idle["worked_ms"]


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def verdict_of(check: object, deployment: object, audit: Audit) -> Verdict:
    return (await outcome_of(check, deployment, audit)).verdict


class Queued(Audit):
    """Its thread stands in the run queue for this share of the time."""

    share = 0.0

    def run_queue_wait(self) -> float:
        return self.share * (time.monotonic() - self._began)


def calm_after(share: float, within: float) -> float:
    audit = Queued()
    audit.share = share
    began = time.monotonic()
    asyncio.run(audit.calm(within))
    return time.monotonic() - began


def test_checks_begin_when_the_processor_is_to_be_had_or_patience_ends() -> None:
    assert calm_after(share=0.0, within=20.0) < 20.0
    assert calm_after(share=0.6, within=0.3) >= 0.3
