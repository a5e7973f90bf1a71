"""A machine that can't keep up: what is found then proves nothing where state lapses, and no more checks begin."""

import asyncio
import time
from typing import Self, cast

import pytest

from holdfast.audit import Audit
from holdfast.catalogue import builtin
from holdfast.check import CheckSpec, Claim
from holdfast.context import Context
from holdfast.deployment import Deployment
from holdfast.finding import Unsafe
from holdfast.patience import Patience
from holdfast.perform import perform
from holdfast.target import builtin_path, load
from holdfast.verdict import Verdict


class Starved:
    """Its three processes stand in the run queue all the time."""

    def run_queue_wait(self) -> float:
        return 3 * time.monotonic()

    async def trouble(self) -> str:
        return ""

    def obituaries(self) -> list[str]:
        return []


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
    target, catalogue = load(builtin_path("lockd")), builtin("lockd")
    spec = CheckSpec(check, [Claim("TC-LOOP-01", 1)])  # type: ignore[arg-type]  # one of those above

    async def run() -> Verdict:
        outcome = await perform(
            spec,
            cast("Deployment", Starved()),
            target=target,
            catalogue=catalogue,
            timings=target.timings(catalogue),
            params={},
            planned=1.0,
            audit=Audit(),
            seed=1,
            say_waiting=lambda _what, _seconds: None,
            lease=_no_other,
            attempt=1,
            patience=Patience(),
        )
        return outcome.verdict

    assert asyncio.run(run()) is verdict


async def _no_other() -> Deployment:
    raise AssertionError("one deployment is enough here")


class Queued(Audit):
    """Its thread stands in the run queue for this share of the time."""

    share = 0.0

    def run_queue_wait(self) -> float:
        return self.share * (time.monotonic() - self._began)


def calm_after(share: float, patience: float) -> float:
    audit = Queued()
    audit.share = share
    began = time.monotonic()
    asyncio.run(audit.calm(patience))
    return time.monotonic() - began


def test_checks_begin_when_the_processor_is_to_be_had_or_patience_ends() -> None:
    assert calm_after(share=0.0, patience=20.0) < 20.0
    assert calm_after(share=0.6, patience=0.3) >= 0.3
