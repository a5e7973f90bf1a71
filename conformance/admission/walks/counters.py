"""What a state still expects of counters and histograms, and how a scrape is held against them (§4).

An increment is expected like a line of the log (`events.py`): it stands in the state until it was seen, and one that
nobody expects, or that is due and does not come, contradicts the state. A node that dies takes with it what it has
counted since the last scrape, so whatever happened before the last kill or restart may be missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.check.walk.vocabulary import Branch, Rule, Seen
from holdfast.conformance.admission.walks.events import Line, expecting, settled
from holdfast.conformance.admission.walks.rules import Tried
from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.walks import rule

ATTEMPTS, BLOCKED, MISMATCHED = "connection_attempt_total", "rate_limit_block_total", "version_mismatch_total"
PRESENTED, RESUMED = "reconnection_attempt_total", "reconnection_success_total"
WAITED, DIRECT = "queue_wait_seconds_count", "admission_latency_seconds_count"
SESSIONS, DEPTH, PEAK = "session_active_current", "queue_depth_current", "queue_depth_peak"
ROWS = {
    ATTEMPTS: "AD-OBS-06",
    BLOCKED: "AD-OBS-09",
    MISMATCHED: "AD-OBS-09",
    PRESENTED: "AD-OBS-04#2",
    RESUMED: "AD-OBS-04#2",
    WAITED: "AD-OBS-08",
    DIRECT: "AD-OBS-08",
}


@dataclass(frozen=True)
class Scrape:
    """What the metrics of all nodes show: the two gauges of each node, the highest peak, and what has risen since."""

    sessions: tuple[int, ...]
    waiting: tuple[int, ...]
    peak: int
    risen: tuple[Line, ...]


def of_attempt(state: State, tried: Tried, by: float) -> State:
    """Returns the state after an attempt with what it adds."""
    answer, token = tried.answer, bool(tried.token)
    # Whether a reconnection is a connection attempt as well is open, as it is for the log.
    after = expecting(state, (ATTEMPTS, "", _outcome(answer)), by=by, due=not token)
    if token:
        read = answer.outcome == "success" or answer.reason == "INVALID_RECONNECTION_TOKEN"
        after = expecting(after, (PRESENTED, "", ""), by=by, due=read)
    if answer.status == 429:
        return expecting(after, (BLOCKED, "", ""), by=by)
    if answer.reason == "VERSION_MISMATCH":
        return expecting(after, (MISMATCHED, "", ""), by=by)
    if answer.outcome != "success":
        return after
    # Whether a session that is resumed or replaced is an admission that was not queued is open too.
    after = expecting(after, (DIRECT, "", ""), by=by, due=not token and not tried.replace)
    return expecting(after, (RESUMED, "", ""), by=by) if token else after


def of_malformed(state: State, answer: Answer, by: float) -> State:
    """Returns the state after an attempt that lacks what it needs: whether it is counted as one is open."""
    lines = [(ATTEMPTS, "", _outcome(answer)), *([(BLOCKED, "", "")] if answer.status == 429 else [])]
    return expecting(state, *lines, by=by, due=False)


def _outcome(answer: Answer) -> str:
    return "throttled" if answer.status == 429 else str(answer.outcome)


def of_promotion(state: State, since: float, by: float) -> State:
    """Returns the state after a promotion, which happened after `since`, with the wait that is observed."""
    return expecting(state, (WAITED, "", ""), by=by, due=since > state.uncounted)


def lost(state: State, until: float) -> State:
    """Returns the state after a node has died or begun anew: what was not seen yet may never be, the peak neither."""
    open_ = tuple(each if each.who else each._replace(due=False) for each in state.expected)
    return replace(state, expected=open_, uncounted=until, peak=0)


def look(state: State, seen: Seen) -> Iterator[Branch[State]]:
    """Yields the state without what was counted, if the gauges of all nodes show what it holds."""
    scrape: Scrape = seen.what
    rules, left = settled(state, seen, scrape.risen, _told, is_ours=lambda each: not each.who)
    inside = len(state.sessions)
    lined = sum(len(room.line) for _, room in state.rooms)
    rules += [
        rule(f"{inside} sessions on every node", set(scrape.sessions) == {inside}, "AD-OBS-07"),
        rule(f"{lined} waiting on every node", set(scrape.waiting) == {lined}, "AD-OBS-07"),
        rule(f"a peak of {state.peak} at least", scrape.peak >= state.peak, "AD-OBS-07"),
    ]
    yield Branch(tuple(rules), replace(state, expected=left, peak=scrape.peak))


def _told(line: Line, *, expected: bool, late: bool) -> Rule:
    name, _, outcome = line
    words = f"{name}{f' of {outcome}' if outcome else ''}"
    said = f"{words} has risen by one" if expected else f"{words} has not risen again"
    return Rule((ROWS[name],), said, held=expected and not late, late=late)
