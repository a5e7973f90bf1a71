"""Arranging is not judging: a step that only prepares a check fails no row but the one that owns it."""

import asyncio
from typing import Self

import pytest

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.finding import Unsafe, expect
from holdfast.run.perform import MOST_FURTHER
from holdfast.spec.verdict import Verdict
from tests.kernel.attempts import Calm, outcome_of

OWNER = "TC-TXN-04"


class Given:
    def __init__(self, context: Context) -> None:
        self.context = context

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(context)


async def arranges_in_vain(given: Given) -> None:
    with given.context.arranging(OWNER):
        expect(503, 200, why="the decide step")


async def judges_after_arranging(given: Given) -> None:
    with given.context.arranging(OWNER):
        expect(200, 200)
    expect(503, 200, why="the apply")


async def sees_two_leaders_while_arranging(given: Given) -> None:
    with given.context.arranging(OWNER):
        raise Unsafe(["one leader in a term"], "two")


@pytest.mark.parametrize(
    ("check", "verdict", "words"),
    [
        (
            arranges_in_vain,
            Verdict.INCONCLUSIVE,
            f"arrangement: expected 200; seen 503 (the decide step) (judged by {OWNER})",
        ),
        (judges_after_arranging, Verdict.FAIL, "the apply"),
        (sees_two_leaders_while_arranging, Verdict.FAIL, "one leader in a term"),
    ],
)
def test_a_failed_step_is_charged_to_the_row_that_owns_it(check: object, verdict: Verdict, words: str) -> None:
    outcome = asyncio.run(outcome_of(check, Calm(), Audit()))
    assert outcome.verdict is verdict
    assert words in outcome.reason


def test_the_row_that_owns_the_step_fails() -> None:
    assert asyncio.run(outcome_of(arranges_in_vain, Calm(), Audit(), row=OWNER)).verdict is Verdict.FAIL


async def judges_another_row(given: Given) -> None:
    with given.context.about(OWNER):
        expect(503, 200, why="the decide step")


async def judges_its_own_row(given: Given) -> None:
    with given.context.about("TC-LOOP-01"):
        expect(503, 200, why="the loop")


def test_a_judgement_of_one_row_is_about_that_row_alone() -> None:
    own = asyncio.run(outcome_of(judges_its_own_row, Calm(), Audit()))
    assert (own.verdict, own.decided) == (Verdict.FAIL, ("TC-LOOP-01",))
    other = asyncio.run(outcome_of(judges_another_row, Calm(), Audit()))
    assert (other.verdict, other.decided) == (Verdict.INCONCLUSIVE, None)
    assert f"judged by {OWNER}" in other.reason


async def finds_much(given: Given) -> None:
    for number in range(MOST_FURTHER + 4):
        with given.context.collect(), given.context.about("TC-LOOP-01"):
            expect(number, -1)


async def finds_something_else_too(given: Given) -> None:
    with given.context.collect(), given.context.about("TC-LOOP-01"):
        expect(1, 2)
    expect(3, 4)


def test_what_is_collected_is_about_its_rows_and_told_up_to_a_number() -> None:
    much = asyncio.run(outcome_of(finds_much, Calm(), Audit()))
    assert (much.decided, len(much.further)) == (("TC-LOOP-01",), MOST_FURTHER + 1)
    assert much.further[-1] == "… and 3 more"
    both = asyncio.run(outcome_of(finds_something_else_too, Calm(), Audit()))
    assert (both.decided, len(both.further)) == (None, 1)
