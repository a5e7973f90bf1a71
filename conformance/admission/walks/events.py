"""The events that a state still expects in the log, and how a log is held against them (§4).

Everything that a target does leaves its line, for the character that it is about. A line that is expected stands in the
state until it comes; one that comes and is not expected, or that is due and does not come, contradicts the state. Where
the spec leaves open whether there is a line, it is expected but not due.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from holdfast.check.walk.vocabulary import Branch, Rule, Seen
from holdfast.conformance.admission.walks.rules import Tried
from holdfast.conformance.admission.walks.state import OPEN, SILENT, Expected, State
from holdfast.conformance.admission.wire import Answer

# A line of the log: event, character, reason.
Line = tuple[str, str, str]


class Told(Protocol):
    """Makes the rule about one line: one that has come, expected or not, or one that is late."""

    def __call__(self, line: Line, *, expected: bool, late: bool) -> Rule: ...


ATTEMPT, FAILED, THROTTLED = "connection.attempt", "connection.failed", "connection.throttled"
QUEUED, ADMITTED, DISCONNECTED = "connection.queued", "connection.admitted", "connection.disconnected"
PRESENTED, RESUMED = "connection.reconnect_attempt", "connection.reconnected"
ROWS = {
    ATTEMPT: "AD-OBS-02",
    PRESENTED: "AD-OBS-04",
    RESUMED: "AD-OBS-04",
    DISCONNECTED: "AD-OBS-05",
}
_TOKEN_WAS_READ = "INVALID_RECONNECTION_TOKEN"  # noqa: S105 - a code, not a secret


def expecting(state: State, *lines: Line, by: float, due: bool = True) -> State:
    """Returns the state with these lines expected, in the log by then at the latest."""
    more = (Expected(event, who, reason, by, due) for event, who, reason in lines)
    return replace(state, expected=tuple(sorted((*state.expected, *more), key=lambda each: (*each[:3], each.due))))


def of_attempt(before: State, after: State, who: str, tried: Tried, by: float) -> State:
    """Returns the state after an attempt with the lines that it leaves."""
    answer, token = tried.answer, bool(tried.token)
    state = expecting(after, (ATTEMPT, who, ""), by=by, due=not token)
    if token:
        read = answer.outcome == "success" or answer.reason == _TOKEN_WAS_READ
        state = expecting(state, (PRESENTED, who, ""), by=by, due=read)
    state = expecting(state, _outcome(who, answer, token=token), by=by)
    session = before.session(who)
    if answer.outcome == "success" and session is not None:
        if tried.replace:
            return expecting(state, (DISCONNECTED, who, "replace"), by=by)
        if session.mode in (OPEN, SILENT):  # taken over: the old socket is gone, the session is not
            return expecting(state, (DISCONNECTED, who, "network"), by=by, due=False)
    return state


def lines_of(who: str, answer: Answer, *, token: bool) -> tuple[Line, Line]:
    """Returns the lines of an attempt and of its outcome."""
    return (ATTEMPT, who, ""), _outcome(who, answer, token=token)


def _outcome(who: str, answer: Answer, *, token: bool) -> Line:
    if answer.outcome == "success":
        return (RESUMED if token else ADMITTED), who, ""
    if answer.outcome == "queued":
        return QUEUED, who, ""
    return (THROTTLED, who, "") if answer.status == 429 else (FAILED, who, str(answer.reason))


def look(state: State, seen: Seen) -> Iterator[Branch[State]]:
    """Yields the state without the lines that have come. `seen.what` are the lines since the last look."""
    rules, left = settled(state, seen, seen.what, _told, is_ours=lambda each: bool(each.who))
    yield Branch(tuple(rules), replace(state, expected=left))


def settled(
    state: State, seen: Seen, lines: Iterable[Line], told: Told, *, is_ours: Callable[[Expected], bool]
) -> tuple[list[Rule], tuple[Expected, ...]]:
    """Holds the lines that have come against those that are expected; returns the rules, and what is still expected."""
    left, rules = list(state.expected), list[Rule]()
    for line in sorted(lines):
        # What is due comes first: taken for one that is not, it would be missed later.
        found = min((each for each in left if each[:3] == line), key=lambda each: not each.due, default=None)
        if found is not None:
            left.remove(found)
        rules.append(told(line, expected=found is not None, late=False))
    late = [each for each in left if is_ours(each) and each.latest < seen.sent]
    rules += [told((each.event, each.who, each.reason), expected=True, late=True) for each in late if each.due]
    return rules, tuple(each for each in left if each not in late)


def _told(line: Line, *, expected: bool, late: bool) -> Rule:
    words = _words(line) if expected else f"no {_words(line)}"
    return Rule((ROWS.get(line[0], "AD-OBS-03"),), words, held=expected and not late, late=late)


def _words(line: Line) -> str:
    event, who, reason = line
    return f"{event} of {who}{f' with reason {reason}' if reason else ''}"
