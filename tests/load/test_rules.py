"""Rules by exact count: one session too many among a hundred thousand is found, and nothing is invented."""

import time
from collections.abc import Iterator

from holdfast.check.history import History, Operation, Outcome
from holdfast.check.invariants import Judged
from holdfast.load.rules import RULES

CAPACITY = 10


def connect(number: int, at: float, *, character: str = "") -> Operation:
    return Operation(character or f"c{number}", "connect", "i", None, Outcome.OK, f"s{number}", at, at + 0.01)


def leave(number: int, at: float, *, character: str = "") -> Operation:
    return Operation(character or f"c{number}", "leave", "i", f"s{number}", Outcome.OK, None, at, at + 0.01)


def churn(count: int) -> Iterator[Operation]:
    """Yields sessions that keep an instance exactly full: each begins after the oldest of ten has left."""
    for number in range(count):
        yield connect(number, 0.1 * number)
        yield leave(number, 0.1 * (number + CAPACITY) - 0.05)


def test_a_hundred_thousand_operations_hold_and_take_seconds() -> None:
    began = time.process_time()
    history = History.of(churn(50_000))
    for rule in ("capacity", "one session"):
        result = RULES[rule](history, {"capacity": CAPACITY})
        assert (result.judged, result.operations) == (Judged.HOLDS, 100_000)
    assert time.process_time() - began < 30


def test_one_session_too_many_among_them_is_found() -> None:
    extra = Operation("intruder", "connect", "i", None, Outcome.OK, "s-x", 3000.0, 3000.001)
    result = RULES["capacity"](History.of([*churn(50_000), extra]), {"capacity": CAPACITY})
    assert result.judged is Judged.VIOLATED
    assert "11 clients held i at the same time; at most 10 may" in result.words


def test_a_second_session_of_a_character_is_found() -> None:
    twice = [connect(1, 0.0, character="c"), connect(2, 1.0, character="c"), leave(1, 2.0, character="c")]
    assert RULES["one session"](History.of(twice), {}).judged is Judged.VIOLATED


def test_a_session_after_the_last_one_was_left_is_no_second_one() -> None:
    again = [connect(1, 0.0, character="c"), leave(1, 1.0, character="c"), connect(2, 2.0, character="c")]
    assert RULES["one session"](History.of(again), {}).judged is Judged.HOLDS


def test_a_refused_twin_is_no_second_session() -> None:
    refused = Operation("c", "connect", "i", None, Outcome.FAILED, "ALREADY_IN_SESSION", 0.5, 0.6)
    held = [connect(1, 0.0, character="c"), refused, leave(1, 1.0, character="c")]
    assert RULES["one session"](History.of(held), {}).judged is Judged.HOLDS


def test_a_leave_without_an_answer_may_have_ended_the_session() -> None:
    unknown = Operation("c", "leave", "i", "s1", Outcome.UNKNOWN, None, 1.0, float("inf"))
    again = [connect(1, 0.0, character="c"), unknown, connect(2, 2.0, character="c"), leave(2, 3.0, character="c")]
    assert RULES["one session"](History.of(again), {}).judged is Judged.HOLDS


def test_whoever_is_overtaken_is_found() -> None:
    def item(what: str, name: str, at: float) -> Operation:
        return Operation("x", what, "i", name, Outcome.OK, None, at, at + 0.1)

    fair = [item("enqueue", "a", 0), item("enqueue", "b", 1), item("serve", "a", 2), item("serve", "b", 3)]
    unfair = [*fair[:2], item("serve", "b", 2), item("serve", "a", 3)]
    assert RULES["first in, first out"](History.of(fair), {}).judged is Judged.HOLDS
    assert RULES["first in, first out"](History.of(unfair), {}).judged is Judged.VIOLATED
    assert RULES["nobody lost"](History.of(fair), {}).judged is Judged.HOLDS
    assert RULES["nobody lost"](History.of(fair[:3]), {}).judged is Judged.VIOLATED


def test_terms_that_fall_and_leaders_that_share_one_are_found() -> None:
    def seen(node: str, leader: str, term: int, at: float) -> Operation:
        return Operation("x", "leader", node, term, Outcome.OK, leader, at, at + 0.01)

    good = [seen("a", "l1", 1, 0), seen("b", "l1", 1, 1), seen("a", "l2", 2, 2), seen("b", "l1", 1, 3)]
    for rule in ("terms grow", "one leader a term"):
        assert RULES[rule](History.of(good), {}).judged is Judged.HOLDS
    assert RULES["terms grow"](History.of([*good, seen("a", "l1", 1, 4)]), {}).judged is Judged.VIOLATED
    assert RULES["one leader a term"](History.of([*good, seen("b", "l3", 2, 4)]), {}).judged is Judged.VIOLATED


def test_an_apply_under_an_old_term_is_found() -> None:
    def applied(term: int, at: float) -> Operation:
        return Operation("x", "apply", "", term, Outcome.OK, None, at, at + 0.01)

    assert RULES["fence"](History.of([applied(1, 0), applied(1, 1), applied(2, 2)]), {}).judged is Judged.HOLDS
    assert RULES["fence"](History.of([applied(1, 0), applied(2, 1), applied(1, 2)]), {}).judged is Judged.VIOLATED
