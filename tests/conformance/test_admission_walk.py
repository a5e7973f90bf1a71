"""The model of admission that walks go over, told what a target might answer."""

import re
from dataclasses import replace
from typing import Any

import pytest

from holdfast import rooms
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.vocabulary import Broken, Command, Seen
from holdfast.conformance.admission.walks import goal
from holdfast.conformance.admission.walks.calls import Attached, Called
from holdfast.conformance.admission.walks.commands import all_commands
from holdfast.conformance.admission.walks.counters import Scrape
from holdfast.conformance.admission.walks.model import AdmissionModel, Sight
from holdfast.conformance.admission.walks.rules import Tried
from holdfast.conformance.admission.walks.situations import kind
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.admission.wire import Answer
from holdfast.run.suite import checks_of

SPANS = Spans(
    grace=12,
    grace_reclaim=18,
    token_ttl=12,
    stale_limit=12,
    stale_reclaim=18,
    heartbeat=6,
    rate_window=12,
    rate_lock=12,
    rate_failures=5,
    replacement_ttl=12,
    promote_never=6,
    prompt_never=2,
    tolerance=0.25,
    slack=0.4,
)
TOKENS = [f"00000000-0000-4000-8000-{number:012}" for number in range(10)]


class Script:
    """Answers that a target might give, told to the model one after the other."""

    def __init__(self, spans: Spans = SPANS, **sight: Any) -> None:
        self.possible = Possible(AdmissionModel(spans, Sight(**sight)), [State()])
        self.now = 100.0

    def tell(self, command: Command, what: Any) -> None:
        self.possible.take((command, Seen(self.now, self.now + 0.01, what, str(what))))
        self.now += 0.05

    def connect(self, who: str, where: str, _token: str = "", _replace: str = "", **fields: Any) -> None:
        status = 429 if fields.get("reason") == "RATE_LIMITED" else 200
        answer = Answer(status, {}, fields, "", self.now, self.now + 0.01)
        build = "old" if fields.get("reason") == "VERSION_MISMATCH" else ""
        named = {name: "current" for name, given in (("token", _token), ("replace", _replace)) if given}
        command = Command.of("connect", who=who, where=where, build=build, **named)
        self.tell(command, Tried(answer, _token, _replace))

    def admitted(self, who: str, where: str, number: int, **more: Any) -> None:
        self.connect(who, where, outcome="success", sessionId=TOKENS[number], reconnectionToken=TOKENS[-1], **more)

    def poll(self, who: str, where: str, status: int = 200, **fields: Any) -> None:
        answer = Answer(status, {}, fields, "", self.now, self.now + 0.01)
        self.tell(Command.of("poll", who=who, where=where), answer)


def test_a_full_instance_queues_and_a_second_attempt_keeps_its_place() -> None:
    script = Script()
    script.admitted("a", "i1", 1)
    script.connect("b", "i1", outcome="queued", position=0, depth=1)
    script.connect("c", "i1", outcome="queued", position=1, depth=2)
    script.connect("b", "i1", outcome="queued", position=0, depth=2)
    with pytest.raises(Broken) as found:
        script.connect("b", "i1", outcome="queued", position=1, depth=2)
    assert "AD-QUEUE-05" in found.value.rows


def test_a_session_in_grace_ends_in_its_window_and_not_before() -> None:
    for after, legal in ((11.0, False), (15.0, True), (19.0, True)):
        script = Script()
        script.admitted("a", "i1", 1)
        script.tell(Command.of("attach", who="a"), _attached(TOKENS[1]))
        script.tell(Command.of("drop", who="a"), None)
        script.now += after
        if legal:
            script.admitted("a", "i1", 2)
        else:
            with pytest.raises(Broken) as found:
                script.admitted("a", "i1", 2)
            assert found.value.rows == ("AD-RECON-02",)


def _attached(session: str) -> Any:
    return Attached(session, accepted=True, frame={})


def test_a_slot_that_is_not_given_to_the_first_in_line_is_overdue() -> None:
    script = Script()
    script.admitted("a", "i1", 1)
    script.connect("b", "i1", outcome="queued", position=0, depth=1)
    leave = Answer(200, {}, {"slotFreed": True}, "", script.now, script.now)
    script.tell(Command.of("leave", who="a", which="current"), Called(leave, TOKENS[1]))
    script.poll("b", "i1", position=0, depth=1)
    script.now += SPANS.promote_never + 1
    with pytest.raises(Broken) as found:
        script.poll("b", "i1", position=0, depth=1)
    assert found.value.rows == ("AD-QUEUE-10",)
    assert found.value.late


def test_the_fifth_failure_locks_and_the_number_left_is_told() -> None:
    script = Script()
    for left in (4, 3, 2, 1, 0):
        script.connect("a", "i1", outcome="failed", reason="VERSION_MISMATCH", remainingAttempts=left)
    with pytest.raises(Broken) as found:
        script.connect("b", "i1", outcome="success", sessionId=TOKENS[1], reconnectionToken=TOKENS[2])
    assert found.value.rows == ("AD-RATE-01",)


def test_whether_a_suspended_attempt_counts_as_a_failure_is_open_until_it_is_told() -> None:
    script = Script()
    script.tell(Command.of("suspend", who="a", on=True), None)
    script.connect("a", "i1", outcome="failed", reason="CHARACTER_SUSPENDED")
    assert len(script.possible.states) == 2
    script.connect("b", "i1", outcome="failed", reason="VERSION_MISMATCH", remainingAttempts=3)
    assert len(script.possible.states) == 1


def test_a_void_token_is_refused_with_any_code_but_that_of_a_cause_that_is_not_there() -> None:
    for reason, holds in (
        ("INVALID_RECONNECTION_TOKEN", True),
        ("ALREADY_IN_SESSION", True),
        ("INVALID_REPLACE_TOKEN", False),
        ("CHARACTER_SUSPENDED", False),
    ):
        script = Script()
        script.admitted("a", "i1", 0)
        if holds:
            script.connect("a", "i1", TOKENS[5], outcome="failed", reason=reason, remainingAttempts=4)
            continue
        with pytest.raises(Broken, match=reason):
            script.connect("a", "i1", TOKENS[5], outcome="failed", reason=reason, remainingAttempts=4)


def test_every_command_has_a_kind_that_the_goal_knows() -> None:
    known = {pair.command for pair in goal.pairs(several=True, upsets=("kill", "pause"), cancels=True)}
    drawn = all_commands(State(), 2, SPANS.rate_failures, upsets=("kill", "pause"), cancels=True)
    assert {kind(command) for command in drawn} <= known


def test_the_walks_claim_exactly_the_rows_that_rules_state() -> None:
    folder = rooms.folder("conformance") / "admission" / "walks"
    named = re.compile(r'"(AD-[A-Z]+-\d+)(?:#(\d))?"')
    stated = {
        (row, int(part or 1)) for file in folder.glob("*.py") for row, part in named.findall(file.read_text("utf-8"))
    }
    checks = [spec for spec in checks_of("admission").values() if spec.walks]
    assert {(claim.id, claim.part) for spec in checks for claim in spec.claims} == stated


def test_a_failure_may_leave_the_window_between_two_of_the_attempts_that_lock_a_user() -> None:
    script = Script()
    script.connect("c", "i1", outcome="failed", reason="VERSION_MISMATCH", remainingAttempts=4)
    script.now += SPANS.rate_window - 0.1
    tries, left = [], [3, 2, 2, 1, 0]
    for remaining in left:
        fields = {"outcome": "failed", "reason": "VERSION_MISMATCH", "remainingAttempts": remaining}
        answer = Answer(200, {}, fields, "", script.now, script.now + 0.01)
        tries.append(Seen(script.now, script.now + 0.01, Tried(answer), str(answer)))
        script.now += 0.05
    seen = Seen(tries[0].sent, tries[-1].received, tuple(tries), "")
    script.possible.take((Command.of("lock", who="c", where="i1"), seen))
    assert all(state.locked("u2") for state in script.possible.states)


def scraped(*risen: tuple[str, str], sessions: int = 0, waiting: int = 0, peak: int = 0) -> Scrape:
    lines = tuple(sorted((name, "", outcome) for name, outcome in risen))
    return Scrape((sessions, sessions), (waiting, waiting), peak, lines)


METERED: dict[str, Any] = {"nodes": 2, "metrics": True, "upsets": ("kill",)}
ADMITTED = (("connection_attempt_total", "success"), ("admission_latency_seconds_count", ""))


def metered() -> Script:
    return Script(replace(SPANS, counted=True), **METERED)


def test_each_attempt_is_counted_once() -> None:
    script = metered()
    script.admitted("a", "i1", 0)
    script.tell(Command.of("metrics"), scraped(*ADMITTED, sessions=1))
    with pytest.raises(Broken) as found:
        script.tell(Command.of("metrics"), scraped(ADMITTED[0], sessions=1))
    assert found.value.rows == ("AD-OBS-06",)


def test_an_attempt_that_is_never_counted_is_missed_in_time() -> None:
    script = metered()
    script.admitted("a", "i1", 0)
    script.tell(Command.of("metrics"), scraped(ADMITTED[0], sessions=1))
    script.now += SPANS.prompt_never
    with pytest.raises(Broken) as found:
        script.tell(Command.of("metrics"), scraped(sessions=1))
    assert found.value.rows == ("AD-OBS-08",)


def test_a_node_that_dies_may_take_along_what_it_has_counted_but_not_the_gauges() -> None:
    script = metered()
    script.admitted("a", "i1", 0)
    script.tell(Command.of("kill", node="n1"), ())
    script.now += SPANS.prompt_never
    script.tell(Command.of("metrics"), scraped(sessions=1))
    with pytest.raises(Broken) as found:
        script.tell(Command.of("metrics"), scraped(sessions=2))
    assert found.value.rows == ("AD-OBS-07",)


def test_the_peak_does_not_fall_below_the_deepest_line() -> None:
    script = metered()
    script.admitted("a", "i1", 0)
    script.connect("c", "i1", outcome="queued", position=0, depth=1)
    script.tell(
        Command.of("metrics"),
        scraped(*ADMITTED, ("connection_attempt_total", "queued"), sessions=1, waiting=1, peak=1),
    )
    with pytest.raises(Broken, match="a peak of 1"):
        script.tell(Command.of("metrics"), scraped(sessions=1, waiting=1, peak=0))


def test_a_promotion_that_waits_through_maintenance_is_due_anew_after_it() -> None:
    script = Script()
    script.admitted("a", "i1", 0)
    script.connect("c", "i1", outcome="queued", position=0, depth=1)
    script.tell(Command.of("maintain", where="i1", on=True), None)
    script.tell(Command.of("leave", who="a", which="current"), left(0))
    script.now += 3 * SPANS.promote_never
    script.tell(Command.of("maintain", where="i1", on=False), None)
    script.poll("c", "i1", state="queued", position=0, depth=1)
    script.now += SPANS.promote_never
    with pytest.raises(Broken) as found:
        script.poll("c", "i1", state="queued", position=0, depth=1)
    assert found.value.rows == ("AD-QUEUE-10",)


def left(number: int) -> Called:
    return Called(Answer(200, {}, {}, "", 0.0, 0.0), f"00000000-0000-4000-8000-{number:012}")


@pytest.mark.parametrize(
    ("call", "status", "fields", "legal"),
    [
        ("without a character", 200, {"outcome": "failed", "reason": "NO_ACTIVE_CHARACTER"}, True),
        ("without a character", 200, {"outcome": "failed", "reason": "INTERNAL_ERROR"}, False),
        ("with altered credentials", 200, {"outcome": "success"}, False),
        ("with half a body", 400, {}, True),
        ("with half a body", 500, {}, False),
    ],
)
def test_what_is_malformed_is_refused(call: str, status: int, fields: dict[str, Any], legal: bool) -> None:
    script = Script()
    answer = Answer(status, {}, fields, "", script.now, script.now + 0.01)
    command = Command.of("malformed", who="a", where="i1", call=call)
    if legal:
        script.tell(command, Tried(answer))
        return
    with pytest.raises(Broken) as found:
        script.tell(command, Tried(answer))
    assert found.value.rows == ("AD-ADMIT-06",)
