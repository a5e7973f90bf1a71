"""A check that judged nothing is no pass, and one finding does not hide the others."""

import asyncio
from typing import Self

import pytest

from holdfast.check.audit import Audit
from holdfast.check.bridge import Call, in_thread
from holdfast.check.context import Context
from holdfast.check.decisive import Acts
from holdfast.check.finding import Absent, ArrangementFailed, Finding, Inconclusive, NotObservable, Unsafe, expect
from holdfast.check.invariants.result import Judged, Result, require
from holdfast.check.spectime import SpecTime
from holdfast.spec.verdict import Kind, Verdict
from tests.kernel.attempts import Calm, outcome_of

OWNER = "TC-TXN-04"
NOTHING_JUDGED = "nothing was judged after 1 line(s) of exchange with the target"


class Given:
    def __init__(self, context: Context) -> None:
        self.context = context

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(context)


async def returns_at_once(given: Given) -> None:
    del given


async def only_arranges(given: Given) -> None:
    with given.context.arranging(OWNER):
        given.context.transcript.sent("GET /leader")
        given.context.transcript.received("200")
        expect(200, 200)


async def only_notes(given: Given) -> None:
    given.context.transcript.note("nothing to look at here")


async def expects(given: Given) -> None:
    del given
    expect(200, 200)


async def asks(given: Given) -> None:
    given.context.transcript.sent("GET /leader")


async def calls(given: Given) -> None:
    with given.context.call(1.0):
        pass


async def waits(T: SpecTime) -> None:
    async def there() -> bool:
        return True

    await T.until(there, give_up=1.0, what="nothing")


async def times(T: SpecTime) -> None:
    T.at_most("leader_ttl", since=T.now(), seen=T.now())


async def holds_an_invariant(given: Given) -> None:
    del given
    require(Result("one leader", Judged.HOLDS, 3))


async def expects_in_another_task(given: Given) -> None:
    await asyncio.gather(expects(given))


async def expects_in_a_thread(given: Given) -> None:
    def work(call: Call) -> None:
        call(expects(given))

    await in_thread(work, deadline=1.0)


async def answers_beside_arranging(given: Given) -> None:
    """A stub that is opened while the check arranges gets its calls later."""
    with given.context.arranging(OWNER):
        come = asyncio.Event()

        async def stub() -> None:
            await come.wait()
            given.context.transcript.add("⇢", "POST /vote")

        served = asyncio.ensure_future(stub())
    come.set()
    await served


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (returns_at_once, "the check neither asked the target nor judged anything"),
        (only_arranges, "2 exchanges prepared the check, and then it neither asked nor judged anything"),
        (only_notes, "the check neither asked the target nor judged anything"),
        (asks, NOTHING_JUDGED),
        (calls, NOTHING_JUDGED),
        (answers_beside_arranging, NOTHING_JUDGED),
    ],
)
def test_a_check_that_judged_nothing_is_no_pass(check: object, words: str) -> None:
    outcome = asyncio.run(outcome_of(check, Calm(), Audit()))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.reason == f"no decisive act: {words}"


@pytest.mark.parametrize(
    "check",
    [
        expects,
        waits,
        times,
        holds_an_invariant,
        expects_in_another_task,
        expects_in_a_thread,
    ],
)
def test_a_judgement_is_a_decisive_act(check: object) -> None:
    outcome = asyncio.run(outcome_of(check, Calm(), Audit()))
    assert outcome.verdict is Verdict.PASS, outcome.reason


def test_checks_that_overlap_do_not_count_for_each_other() -> None:
    async def both() -> list[Verdict]:
        outcomes = await asyncio.gather(
            outcome_of(expects, Calm(), Audit()), outcome_of(returns_at_once, Calm(), Audit())
        )
        return [outcome.verdict for outcome in outcomes]

    assert asyncio.run(both()) == [Verdict.PASS, Verdict.INCONCLUSIVE]


def test_outside_a_check_a_judgement_counts_nowhere() -> None:
    acts = Acts()
    expect(1, 1)
    assert not acts.decisive


def find(finding: Finding) -> None:
    raise finding


async def collects_three(given: Given) -> None:
    with given.context.collect():
        find(Absent(["a header"], "none"))
    with given.context.collect():
        find(Finding(["200"], "503"))
    with given.context.collect():
        expect(200, 200)
    raise Unsafe(["one leader in a term"], "two")


def test_a_check_that_collects_fails_at_its_end_with_the_worst_first() -> None:
    outcome = asyncio.run(outcome_of(collects_three, Calm(), Audit()))
    assert (outcome.verdict, outcome.kind, outcome.unsafe) == (Verdict.FAIL, Kind.VIOLATES, True)
    assert (outcome.expected, outcome.seen) == (("one leader in a term",), "two")
    assert outcome.further == ("expected 200; seen 503", "expected a header; seen none")


async def collects_then_is_inconclusive(given: Given) -> None:
    with given.context.collect():
        expect(503, 200)
    raise Inconclusive("too few samples")


async def collects_then_can_not_arrange(given: Given) -> None:
    with given.context.collect():
        expect(503, 200)
    raise ArrangementFailed(OWNER, "no leader")


async def collects_then_is_blind(given: Given) -> None:
    with given.context.collect():
        expect(503, 200)
    raise NotObservable("admin calls")


@pytest.mark.parametrize(
    "check", [collects_then_is_inconclusive, collects_then_can_not_arrange, collects_then_is_blind]
)
def test_nothing_that_ends_a_check_hides_what_it_found(check: object) -> None:
    outcome = asyncio.run(outcome_of(check, Calm(), Audit()))
    assert (outcome.verdict, outcome.seen) == (Verdict.FAIL, "503")
    assert len(outcome.further) == 1
    assert not outcome.blocked_by


async def collects_while_arranging(given: Given) -> None:
    with given.context.arranging(OWNER), given.context.collect():
        expect(503, 200)


def test_a_finding_while_arranging_is_not_collected() -> None:
    outcome = asyncio.run(outcome_of(collects_while_arranging, Calm(), Audit()))
    assert (outcome.verdict, outcome.blocked_by) == (
        Verdict.INCONCLUSIVE,
        f"{OWNER}, which the arrangement rests on",
    )


async def lacks_admin_calls(given: Given) -> None:
    given.context.transcript.sent("PUT /admin/instances")
    raise NotObservable("admin calls", "PUT /admin/instances: 404")


def test_a_call_that_the_target_does_not_offer_blocks_the_check() -> None:
    outcome = asyncio.run(outcome_of(lacks_admin_calls, Calm(), Audit()))
    assert (outcome.verdict, outcome.blocked_by) == (Verdict.NOT_OBSERVABLE, "no admin calls")
    assert outcome.reason == "not observable without admin calls (PUT /admin/instances: 404)"


async def asserts_without_a_sentence(given: Given) -> None:
    del given
    raise AssertionError


def test_an_assertion_shows_its_own_sentence_only() -> None:
    outcome = asyncio.run(outcome_of(asserts_without_a_sentence, Calm(), Audit()))
    assert (outcome.reason, outcome.seen) == ("an assertion without a sentence did not hold", None)
