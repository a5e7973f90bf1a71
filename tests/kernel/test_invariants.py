"""What the invariants say: words, evidence, limits. test_invariants_exact proves that they are right."""

import math
from functools import partial

import pytest

from holdfast.check import invariants
from holdfast.check.finding import Finding, Inconclusive
from holdfast.check.history import History, HistoryError, Operation, Outcome, Value
from holdfast.check.invariants import Judged, Limit, Lock, Register, Result


def done(
    client: str, what: str, at: float, until: float, *, item: Value = None, value: Value = None, key: str = "k"
) -> Operation:
    return Operation(client, what, key, item, Outcome.OK, value, at, until)


def lost(client: str, what: str, at: float, *, item: Value = None, key: str = "k") -> Operation:
    return Operation(client, what, key, item, Outcome.UNKNOWN, None, at, math.inf)


def refused(client: str, what: str, at: float, until: float, *, item: Value = None, key: str = "k") -> Operation:
    return Operation(client, what, key, item, Outcome.FAILED, None, at, until)


def test_two_holders_are_named_with_the_time_they_shared() -> None:
    history = History.of(
        [
            done("a", "acquire", 10.0, 10.1),
            refused("c", "acquire", 10.2, 10.3),
            done("b", "acquire", 11.0, 11.2),
            done("a", "release", 12.0, 12.1),
        ]
    )
    result = invariants.one_holder(history)
    assert result.describe().splitlines() == [
        "at most one holder: violated (4 operations): a and b both held k for at least 0.800 s",
        "  [+0.000, +0.100] a: acquire on k → ok",
        "  [+1.000, +1.200] b: acquire on k → ok",
        "  [+2.000, +2.100] a: release on k → ok",
    ]


def test_keys_are_judged_apart() -> None:
    apart = History.of([done("a", "acquire", 0, 1, key="x"), done("b", "acquire", 2, 3, key="y")])
    assert invariants.one_holder(apart).judged is Judged.HOLDS
    same = History.of([operation._replace(key="x") for operation in apart])
    assert invariants.one_holder(same).judged is Judged.VIOLATED


def test_a_lease_that_ran_out_may_be_given_to_another() -> None:
    history = History.of([done("a", "acquire", 0.0, 0.5), done("b", "acquire", 9.8, 9.9)])
    assert invariants.one_holder(history, ttl=10.0).judged is Judged.VIOLATED
    assert invariants.one_holder(history, ttl=10.0, tolerance=0.25).judged is Judged.HOLDS
    renewed = History.of([*history, done("a", "renew", 5.0, 5.1)])
    assert invariants.one_holder(renewed, ttl=10.0, tolerance=0.25).judged is Judged.VIOLATED


def test_leases_that_fit_in_pairs_but_not_together_are_evidence_together() -> None:
    """The second can begin late, after the first, or early, before the third; not both."""
    history = History.of(
        [
            done("a", "acquire", 0, 1),
            done("b", "acquire", 2, 6),
            done("c", "acquire", 7, 8),
            done("d", "acquire", 50, 51),
        ]
    )
    for without in range(3):
        pair = History.of(operation for at, operation in enumerate(history) if at != without)
        assert invariants.one_holder(pair, ttl=5).judged is Judged.HOLDS
    result = invariants.one_holder(history, ttl=5)
    assert result.words == "k: no order of these grants (a, b, c) leaves each its whole lease of 5 s"
    assert [operation.client for operation in result.evidence] == ["a", "b", "c"]


def test_a_belated_release_must_not_end_a_newer_hold() -> None:
    history = History.of([lost("a", "release", 1), done("a", "acquire", 2, 3), done("b", "acquire", 5, 6)])
    assert invariants.one_holder(history).judged is Judged.VIOLATED


def test_a_grant_that_was_given_back_before_it_was_answered_proves_nothing() -> None:
    history = History.of([done("a", "acquire", 0, 5), done("a", "release", 2, 3), done("b", "acquire", 1, 4)])
    assert invariants.one_holder(history).judged is Judged.HOLDS


def test_a_crowd_is_counted_by_clients() -> None:
    crowd = [done(f"c{number}", "acquire", number, number + 0.5) for number in range(4)]
    history = History.of([*crowd, done("c0", "acquire", 4, 5), done("c1", "release", 2.6, 2.7)])
    assert invariants.at_most(history, 3).judged is Judged.HOLDS
    result = invariants.at_most(history, 2)
    assert result.words == "3 clients held k at the same time; at most 2 may"
    assert [operation.client for operation in result.evidence if operation.what == "acquire"] == ["c0", "c1", "c2"]


def test_two_leaders_of_one_term_are_named() -> None:
    history = History.of(
        [
            done("watch", "lead", 0, 1, item="n1", value=7),
            done("watch", "lead", 2, 3, item="n2", value=8),
            done("watch", "lead", 4, 5, item="n3", value=7),
        ]
    )
    result = invariants.one_leader_per_term(history)
    assert result.words == "both n1 and n3 led in term 7 of k"
    assert len(result.evidence) == 2


def test_a_token_that_falls_is_named_with_the_one_before() -> None:
    grants = [done("a", "acquire", 0, 1, value=5), done("b", "acquire", 0.5, 2, value=4)]
    assert invariants.monotonic_tokens(History.of(grants)).judged is Judged.HOLDS
    late = done("c", "acquire", 3, 4, value=3)
    result = invariants.monotonic_tokens(History.of([*grants, late]))
    assert result.words == "k: token 3 came after 5 had been accepted"
    again = invariants.monotonic_tokens(History.of([*grants, late._replace(value=5)]))
    assert again.words == "k: token 5 was given twice"


def test_a_stale_writer_is_fenced_by_what_it_names() -> None:
    fenced = partial(invariants.monotonic_tokens, grant="write", where="argument", repeats=True)
    writes = [done("a", "write", 0, 1, item=4), done("b", "write", 2, 3, item=5), done("b", "write", 4, 5, item=5)]
    assert fenced(History.of(writes)).judged is Judged.HOLDS
    assert fenced(History.of([*writes, refused("a", "write", 6, 7, item=4)])).judged is Judged.HOLDS
    assert fenced(History.of([*writes, done("a", "write", 6, 7, item=4)])).judged is Judged.VIOLATED


def test_a_token_that_is_no_number_is_our_mistake() -> None:
    with pytest.raises(HistoryError, match="its value 'x' is not a number"):
        invariants.monotonic_tokens(History.of([done("a", "acquire", 0, 1, value="x")]))


def queue(*extra: Operation) -> History:
    arrivals = [done(item, "enqueue", at, at + 0.5, item=item) for at, item in enumerate("xyz")]
    return History.of([*arrivals, *extra])


def test_who_overtakes_is_named_and_concurrent_services_are_no_order() -> None:
    in_order = [done("s", "serve", 10 + at, 11 + at, item=item) for at, item in enumerate("xyz")]
    assert invariants.fifo(queue(*in_order)).judged is Judged.HOLDS
    together = [done("s", "serve", 10, 11, item=item) for item in "zyx"]
    assert invariants.fifo(queue(*together)).judged is Judged.HOLDS
    result = invariants.fifo(queue(done("s", "serve", 10, 11, item="y"), done("s", "serve", 12, 13, item="x")))
    assert result.words == "y was served in k before x, which had arrived earlier"
    assert [operation.what for operation in result.evidence] == ["enqueue", "enqueue", "serve", "serve"]


def test_who_still_waits_must_not_be_overtaken_unless_it_left() -> None:
    served = done("s", "serve", 10, 11, item="y")
    result = invariants.fifo(queue(served))
    assert result.words == "y was served in k while x still waited, which had arrived earlier"
    assert invariants.fifo(queue(served, done("x", "leave", 8, 9, item="x"))).judged is Judged.HOLDS
    assert invariants.fifo(queue(served, lost("x", "leave", 8, item="x"))).judged is Judged.HOLDS
    assert invariants.fifo(queue(served, done("x", "leave", 12, 13, item="x"))).judged is Judged.VIOLATED
    assert invariants.fifo(queue(served, done("x", "leave", -2, -1, item="x"))).judged is Judged.VIOLATED
    served_after_all = done("s", "serve", 12, 13, item="x")
    assert invariants.fifo(queue(served, lost("x", "leave", 8, item="x"), served_after_all)).judged is Judged.VIOLATED


def test_services_that_touch_have_no_order() -> None:
    first, second = done("s", "serve", 10, 11, item="y"), done("s", "serve", 11, 12, item="x")
    assert invariants.fifo(queue(first, second)).judged is Judged.HOLDS


def test_one_unanswered_service_excuses_one_item() -> None:
    served, silent = done("s", "serve", 10, 11, item="z"), lost("s", "serve", 5)
    result = invariants.fifo(queue(served, silent))
    assert result.words == "x, y were overtaken in k, and unanswered services can have taken only 1"
    assert invariants.fifo(queue(served, silent, lost("s", "serve", 6))).judged is Judged.HOLDS
    assert invariants.fifo(queue(served, silent, lost("s", "serve", 12))).judged is Judged.VIOLATED  # too late
    empty = done("s", "serve", 6, 7)
    assert invariants.fifo(queue(served, silent, empty)).judged is Judged.VIOLATED  # it found nothing


@pytest.mark.parametrize(
    ("operations", "words"),
    [
        ([done("c", "submit", 0, 1, item="x")], "k: accepted without ever taking effect: x"),
        ([done("w", "effect", 2, 3, item="x"), done("w", "effect", 4, 5, item="x")], "k: x took effect twice"),
        ([done("w", "effect", 2, 3, item="y")], "k: y took effect though nobody submitted it"),
        (
            [refused("c", "submit", 0, 1, item="y"), done("w", "effect", 2, 3, item="y")],
            "k: y took effect though it was refused",
        ),
        (
            [done("w", "effect", 0, 1, item="y"), lost("c", "submit", 2, item="y")],
            "k: y took effect before it was submitted",
        ),
    ],
)
def test_each_way_to_miss_exactly_once_has_its_words(operations: list[Operation], words: str) -> None:
    harmless = [lost("c", "submit", 0, item="never mind"), refused("w", "effect", 0, 1, item="z")]
    assert invariants.exactly_once(History.of([*harmless, *operations])).words == words


def test_a_lost_item_is_named_and_unknown_accounts_are_no_proof_of_loss() -> None:
    puts = [done("c", "put", at, at + 1, item=item) for at, item in enumerate("xy")]
    seen = [done("look", "found", 5, 6, item="x")]
    result = invariants.nothing_lost(History.of([*puts, *seen]))
    assert result.words == "k: acknowledged and gone: y"
    other = History.of([*puts, *seen, done("y", "left", 3, 4, item="y")])
    assert invariants.nothing_lost(other, found=["found", "left"]).judged is Judged.HOLDS
    assert invariants.nothing_lost(History.of([*puts, *seen, lost("look", "found", 7)])).judged is Judged.HOLDS


def test_a_stale_read_shows_where_every_order_ends() -> None:
    history = History.of(
        [
            done("a", "write", 0, 1, item=1),
            done("a", "write", 2, 3, item=2),
            done("b", "read", 4, 5, value=1),
            done("b", "read", 6, 7, value=2),
        ]
    )
    result = invariants.linearizable(history, Register())
    assert result.words == "k: after 2 operations in the best order the state is 2, and none of these can come next"
    assert [operation.what for operation in result.evidence] == ["write", "read"]


@pytest.mark.parametrize(
    ("reads", "words"),
    [
        ([done("b", "read", 4, 5, value=9)], "k: 9 was read although nobody had written it"),
        ([done("b", "read", 1, 2, value=2)], "k: 2 was read before it was written"),
        ([done("b", "read", 5, 6, value=1)], "k: 1 was the value both before and after 2, which was written once"),
        ([done("b", "read", 5, 6)], "k: None was the value both before and after 1, which was written once"),
    ],
)
def test_each_contradiction_of_a_register_has_its_words(reads: list[Operation], words: str) -> None:
    writes = [done("a", "write", 0, 1, item=1), done("a", "write", 3, 4, item=2), lost("c", "write", 0, item=3)]
    assert invariants.atomic_register(History.of(writes)).judged is Judged.HOLDS
    result = invariants.atomic_register(History.of([*writes, *reads]))
    assert (result.words, result.judged) == (words, Judged.VIOLATED)


def test_a_release_that_does_nothing_at_first_may_be_needed_later() -> None:
    history = History.of([done("b", "release", 0, 9), done("b", "acquire", 1, 2), done("a", "acquire", 3, 4)])
    assert invariants.linearizable(history, Lock()).judged is Judged.HOLDS


def test_a_deep_history_is_searched_without_recursion() -> None:
    rounds = range(3000)
    turns = [
        done(f"c{at % 3}", what, 2 * at + late, 2 * at + late + 0.5)
        for at in rounds
        for what, late in (("acquire", 0), ("release", 1))
    ]
    assert invariants.linearizable(History.of(turns), Lock()).judged is Judged.HOLDS
    assert invariants.one_holder(History.of(turns)).judged is Judged.HOLDS


def test_beyond_its_limits_it_says_that_it_ran_out() -> None:
    writes = [lost(f"c{at}", "write", 0, item=at) for at in range(12)]
    history = History.of([*writes, done("r", "read", 1, 2, value=99)])
    by_states = invariants.linearizable(history, Register(), limit=Limit(states=1000))
    assert (by_states.judged, by_states.words) == (Judged.RAN_OUT, "more than 1000 positions, which is the limit")
    by_time = invariants.linearizable(history, Register(), limit=Limit(seconds=0.0))
    assert (by_time.judged, by_time.words) == (Judged.RAN_OUT, "more than 0 s of processor time, which is the limit")


FEW = Limit(operations=1)


@pytest.mark.parametrize(
    "ask",
    [
        partial(invariants.one_holder, acquire="write", limit=FEW),
        partial(invariants.at_most, count=9, acquire="write", limit=FEW),
        partial(invariants.one_leader_per_term, lead="write", limit=FEW),
        partial(invariants.monotonic_tokens, grant="write", limit=FEW),
        partial(invariants.fifo, arrive="write", limit=FEW),
        partial(invariants.exactly_once, submit="write", limit=FEW),
        partial(invariants.nothing_lost, put="write", limit=FEW),
        partial(invariants.linearizable, model=Register(), limit=FEW),
        partial(invariants.atomic_register, limit=FEW),
    ],
)
def test_every_invariant_has_a_limit_and_needs_something_to_judge(ask: "partial[Result]") -> None:
    writes = History.of([done("a", "write", 0, 1, item=1, value=1), done("a", "write", 2, 3, item=2, value=2)])
    result = ask(writes)
    assert (result.judged, result.words) == (Judged.RAN_OUT, "more than 1 operations, which is the limit")
    with pytest.raises(HistoryError, match="no operation 'write' in the history; it has: put"):
        ask(History.of([done("a", "put", 0, 1)]))


def test_a_check_fails_on_a_violation_and_is_inconclusive_beyond_the_limit() -> None:
    history = History.of([done("a", "acquire", 0, 1), done("b", "acquire", 2, 3)])
    with pytest.raises(Finding, match="a and b both held k"):
        invariants.require(invariants.one_holder(history))
    with pytest.raises(Inconclusive, match="could not be decided"):
        invariants.require(invariants.one_holder(history, limit=FEW))
    invariants.require(invariants.at_most(history, 2))
