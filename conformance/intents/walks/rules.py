"""Small demands on answers, each with the rows that state it."""

from collections.abc import Iterable

from holdfast.check.walk.vocabulary import Rule
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.walks.state import (
    BUSY,
    ENDED,
    EXPIRED,
    FAILED,
    NEW,
    NO_TUNER,
    READY,
    STARTING,
    STOPPED,
    Session,
)
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared.walks import in_time, rule

CODES = {400: "INVALID_INPUT", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 409: "LEASE_BUSY"}
TOO_LARGE = 413
_REASON = {STOPPED: "R_CLIENT_STOP", EXPIRED: "R_LEASE_EXPIRED"}
_ENDINGS = {**_REASON, BUSY: "R_LEASE_BUSY", NO_TUNER: "REJECTED_NO_TUNER", FAILED: "a reason that is no rejection"}
_STOPPING = frozenset({"STOPPING", "DRAINING"})


def accepted(answer: Answer, *rows: str) -> tuple[Rule, ...]:
    return (
        rule("202 with a session id", answer.status == 202 and answer.session_id, *rows),
        rule("a JSON answer", answer.media_type == "application/json", "IN-QUEUE-04"),
    )


def same_session(answer: Answer, session: Session, *rows: str) -> Rule:
    return rule(f"the session {session.id}", answer.session_id == session.id, *rows)


def new_session(answer: Answer, known: Iterable[Session], *rows: str) -> Rule:
    held = answer.session_id and answer.session_id not in {each.id for each in known}
    return rule("a new session", held, *rows)


def refusal(answer: Answer, status: int, *rows: str, also: tuple[int, ...] = ()) -> tuple[Rule, ...]:
    """A refusal of the API: its status, no session, and a problem document (seed 3.1, 6; IN-VALID-04)."""
    held = answer.status in (status, *also) and not answer.session_id
    return (rule(f"{status} without a session", held, *rows), *_problem(answer))


def _problem(answer: Answer) -> tuple[Rule, ...]:
    named, code = answer.headers.get("X-Request-ID", ""), CODES.get(answer.status)
    row = "IN-PHASE-08" if answer.status == 409 else "IN-VALID-04"
    return (
        rule("a problem document", answer.media_type == wire.PROBLEM, "IN-VALID-04"),
        rule("its status in it", answer.fields.get("status") == answer.status, "IN-VALID-04"),
        rule(f"the code {code or 'of the refusal'}", answer.code == code if code else answer.code, row),
        rule("requestId as in X-Request-ID", named and answer.request_id == named, "IN-VALID-04"),
    )


def conflict(answer: Answer, retry_after: int, *rows: str) -> tuple[Rule, ...]:
    """Phase 1: the channel is held (section 4)."""
    said = answer.headers.get("Retry-After")
    return (
        *refusal(answer, 409, *rows),
        rule(f"Retry-After: {retry_after}", said == str(retry_after), "IN-PHASE-08"),
    )


def tells_nothing(answer: Answer, sessions: Iterable[Session], *rows: str) -> Rule:
    """Who is refused learns of no session."""
    said = " ".join((answer.text, *answer.headers.values()))
    return rule("no word of any session", not any(each.id in said for each in sessions), *rows)


def shows(session: Session, answer: Answer | None, running: frozenset[str], *rows: str) -> tuple[Rule, ...]:
    """A poll shows the session as it is; one that has ended goes on to show what it showed first."""
    if answer is None:
        return (rule("a session that can be polled", False, "IN-QUEUE-01"),)
    named = rule("the session that was asked for", answer.session_id in ("", session.id), "IN-QUEUE-01")
    there = rule("a session that can be polled", answer.status in (200, 410), "IN-QUEUE-01")
    held, said = _fits(session, answer, running)
    words = f"{session.key.target} {session.key.profile} {said}"
    if session.mode == NEW:
        return (there, named, rule(words, held, *rows))
    rules = [there, named, in_time(words, held, *rows)]
    if session.said != ("", ""):
        rules.append(rule("the same end as before", (answer.state, answer.reason) == session.said, "IN-BUSY-05"))
    return tuple(rules)


def _fits(session: Session, answer: Answer, running: frozenset[str]) -> tuple[bool, str]:
    if session.mode == ENDED:
        return answer.terminal and _ends(session.why, answer), f"ended with {_ENDINGS.get(session.why, 'a reason')}"
    if session.stopping and (answer.terminal or answer.state in _STOPPING):
        return True, "on its way out"  # whether the API itself ends what nobody runs is open
    states = {NEW: wire.NEW, STARTING: wire.STARTING, READY: running}[session.mode]
    return answer.state in states, " or ".join(sorted(states))


def _ends(why: str, answer: Answer) -> bool:
    if why in _REASON:
        return answer.reason == _REASON[why]
    return {BUSY: answer.busy, NO_TUNER: answer.no_tuner, FAILED: not answer.rejected}.get(why, bool(answer.reason))
