"""What the protocol calls equal is equal, and every finding is a sentence."""

import ast
import time
from pathlib import Path

import pytest

import holdfast.conformance.admission as suite
from holdfast.check.finding import Finding, demand, expect
from holdfast.conformance.admission.dialects import dialect
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.limiter import same_hint
from holdfast.conformance.admission.values import epoch_ms
from holdfast.conformance.admission.wire import (
    Answer,
    client_error,
    coded,
    place,
    queued,
    refused,
    success,
    timed_out,
)
from holdfast.conformance.shared.wire import cut_off


def _answer(status: int = 200, headers: dict[str, str] | None = None, wall: float = 0.0, **body: object) -> Answer:
    return Answer(status, headers or {}, body, wall=wall)


def test_a_number_is_whole_however_it_is_written() -> None:
    seen = _answer(outcome="queued", position=0.0, depth=1.0)
    expect(seen, queued(position=0, depth=1))
    expect(seen, place(0, 1))
    assert seen.describe() == "200 queued position 0 depth 1"


def test_a_session_id_may_have_letters_of_either_case() -> None:
    expect(_answer(outcome="success", sessionId="AB-CD"), success("ab-cd"))


def test_null_is_no_value() -> None:
    seen = _answer(outcome="failed", sessionId=None, position=None, reconnectionToken=None)
    assert seen.given("sessionId", "position") == []
    assert (seen.token, seen.session_id) == ("", "")


def test_what_is_no_word_is_told_and_matches_nothing() -> None:
    seen = _answer(outcome="failed", reason={"code": 7})
    assert not coded().matches(seen)
    assert seen.describe() == '200 failed {"code": 7}'


@pytest.mark.parametrize(
    ("said", "agrees"),
    [("30", True), ("31", False), ("Thu, 01 Jan 1970 00:16:51 GMT", True), ("soon", False), ("", False)],
)
def test_retry_after_may_be_seconds_or_a_date(said: str, agrees: bool) -> None:
    assert same_hint(_answer(503, {"Retry-After": said}, wall=980.6, retryAfterSeconds=30.0)) is agrees


@pytest.mark.parametrize(
    "stamp",
    [
        1_700_000_000,
        1_700_000_000_000,
        1_700_000_000_000_000,
        "1700000000000",
        "2023-11-14T22:13:20Z",
        "2023-11-14t22:13:20.000000000z",
        "2023-11-14T23:13:20,0+01:00",
    ],
)
def test_a_time_is_told_in_any_usual_unit_or_as_iso_8601(stamp: object) -> None:
    assert epoch_ms(stamp) == pytest.approx(1_700_000_000_000)


def test_what_is_no_time_is_none() -> None:
    assert epoch_ms("tomorrow") is None
    assert epoch_ms(None) is None


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        ({"outcome": "admitted", "sessionToken": "s"}, "success", None),
        ({"outcome": "queued", "queuePosition": 2}, "queued", None),
        ({"outcome": "suspended"}, "failed", "CHARACTER_SUSPENDED"),
        ({"outcome": "invalid_replace_token"}, "failed", "INVALID_REPLACE_TOKEN"),
        ({"outcome": "invalid_instance"}, "failed", "INVALID_INSTANCE"),
        ({"outcome": "server_error", "message": "VERSION_MISMATCH"}, "failed", "VERSION_MISMATCH"),
        ({"outcome": "server_error", "message": "Internal server error"}, "failed", "INTERNAL_ERROR"),
        ({"outcome": 7}, "7", None),
    ],
)
def test_upstreams_outcomes_are_read_in_the_words_of_the_contract(
    said: dict[str, object], outcome: str, reason: str | None
) -> None:
    seen = dialect("tilemud-code").read(Answer(200, {}, said))
    assert (seen.outcome, seen.reason) == (outcome, reason)
    assert seen.position in (None, 2)


def test_upstream_takes_its_build_and_token_elsewhere() -> None:
    request = dialect("tilemud-code").connect("i", character="c", build="b", replace="r")
    assert request.body == {"characterId": "c", "clientVersion": "b", "replaceToken": "r"}
    assert not request.query


def test_legal_answers_are_told_in_words() -> None:
    assert client_error().describe() == "a client error (4xx)"
    assert timed_out().describe() == "timeout TIMEOUT status 200 or 408"
    assert cut_off().matches(Answer(0, {}, None, "reset"))
    assert not client_error().matches(_answer(500))
    with pytest.raises(Finding, match=r"expected no token; seen a, b \(why\)"):
        none_of(["a", "b"], "token", "why")
    with pytest.raises(Finding, match="expected one; seen two"):
        demand(False, "one", "two")
    demand(True, "one", "one")
    none_of([], "token")


def test_refusals_without_a_code_are_not_coded() -> None:
    assert coded().matches(_answer(400, outcome="failed", reason="INVALID_REQUEST"))
    assert not coded().matches(_answer(500, outcome="failed", reason="INTERNAL_ERROR"))
    assert refused().matches(_answer(outcome="failed"))


@pytest.mark.parametrize("file", sorted(Path(suite.__path__[0]).rglob("*.py")), ids=lambda path: path.name)
def test_no_check_has_a_bare_assert_that_would_print_objects(file: Path) -> None:
    bare = [node.lineno for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Assert)]
    assert not bare, f"{file.name}: say it as a sentence (expect, demand, none_of), lines {bare}"


def test_the_wall_clock_of_an_answer_is_not_needed_for_seconds() -> None:
    assert _answer(503, {"Retry-After": "5"}, wall=time.time()).retry_header == 5
