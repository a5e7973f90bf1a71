"""Small demands on answers, each with the rows that state it."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.admission.limiter import same_hint
from holdfast.conformance.admission.values import UUID4
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.admission.wire import REASONS, Answer
from holdfast.conformance.shared.walks import Span, rule, span_of

Rows = tuple[str, ...]
# Whether a refusal uses up one of the user's failures: it has to, it must not, or that is left open.
COUNTS, FREE, OPEN_TO_READING = "counts", "free", "open"
# Why somebody may not connect at all; looked at before any token.
_BARRED = ("NOT_AUTHENTICATED", "RATE_LIMITED", "NO_ACTIVE_CHARACTER", "CHARACTER_SUSPENDED", "VERSION_MISMATCH")


@dataclass(frozen=True)
class Tried:
    """An attempt as it went over the wire: its answer, and the tokens that were presented."""

    answer: Answer
    token: str = ""
    replace: str = ""


@dataclass(frozen=True)
class Step:
    """One command in one state, and what was seen of it."""

    state: State
    command: Command
    seen: Seen
    spans: Spans

    @property
    def who(self) -> str:
        return self.command.get("who")

    @property
    def where(self) -> str:
        return self.command.get("where")

    @property
    def at(self) -> Span:
        return span_of(self.seen)


def outcome(answer: Answer, wanted: str, *rows: str) -> Rule:
    return rule(wanted, answer.outcome == wanted, *rows)


def refusal(answer: Answer, reason: str, *rows: str) -> Rule:
    return rule(f"failed {reason}", answer.outcome == "failed" and answer.reason == reason, *rows)


def any_refusal(answer: Answer, *rows: str) -> Rule:
    held = answer.outcome == "failed" and answer.reason in REASONS and answer.status < 500
    return rule("failed with a code of the table", held, *rows)


def reason_holds(answer: Answer, *, token: bool, replace: bool) -> Rule:
    """Says no cause that is not there: of one who may connect, or of a token that was not presented (§4, §11)."""
    absent = set(_BARRED)
    absent |= set() if token else {"INVALID_RECONNECTION_TOKEN"}
    absent |= set() if replace else {"INVALID_REPLACE_TOKEN"}
    return rule(f"not {answer.reason}, which is not so", answer.reason not in absent, "AD-ADMIT-05")


def nothing_given(answer: Answer) -> Rule:
    """A refusal hands out neither a session nor a place."""
    given = answer.session_id or answer.token or answer.position is not None
    return rule("no session and no position", not given, "AD-ADMIT-05")


def no_offer(answer: Answer, *rows: str) -> Rule:
    return rule("no replacement token", not answer.offer, *rows)


def fresh_token(answer: Answer, known: tuple[str, ...], *rows: str) -> Rule:
    held = bool(UUID4.fullmatch(answer.token)) and answer.token not in known
    return rule("a new reconnection token", held, *rows)


def remaining(answer: Answer, state: State, user: str, spans: Spans, *, told: bool) -> Rule:
    """Every evaluated attempt says how many failures are left; only of a plain failure must it be said."""
    left = max(0, spans.rate_failures - len(state.failed(user)))
    said = answer.remaining
    held = said == left or (said is None and not told)
    return rule(f"{left} attempts remaining", held, "AD-RATE-02", "AD-RATE-03", "AD-RATE-04")


def with_failure(state: State, user: str, at: Span, spans: Spans) -> State:
    """Returns the state with one failure more; the one that fills the window locks the user."""
    failures = (*state.failed(user), at)
    full = len(failures) >= spans.rate_failures
    after = state.with_failures(user, failures)
    return after.with_lock(user, at) if full else after


def refused(
    state: State, user: str, seen: Seen, spans: Spans, rules: tuple[Rule, ...], counting: str
) -> Iterator[Branch[State]]:
    """Yields the branches of a refusal: it may use up a failure, and the number that is left tells whether it did."""
    answer = seen.what.answer
    if counting != FREE:
        after = with_failure(state, user, span_of(seen), spans)
        rules_then = (*rules, nothing_given(answer), remaining(answer, after, user, spans, told=counting == COUNTS))
        yield Branch(rules_then, after)
    if counting != COUNTS:
        yield Branch((*rules, nothing_given(answer), remaining(answer, state, user, spans, told=False)), state)


def throttled(state: State, since: Span, seen: Seen, spans: Spans) -> Branch[State]:
    """Under lock everything is refused, and told for how long."""
    answer = seen.what.answer
    longest = since.hi + spans.rate_lock - seen.sent
    least = since.lo + spans.rate_lock - seen.received
    said = answer.retry_after
    in_time = isinstance(said, int | float) and max(1.0, least - 1) <= said <= max(1.0, longest + 1)
    return Branch(
        (
            refusal(answer, "RATE_LIMITED", "AD-RATE-06", "AD-RATE-01"),
            rule("status 429", answer.status == 429, "AD-RATE-01"),
            rule(f"retry after {max(1.0, least):.0f} to {longest + 1:.0f} s", in_time, "AD-RATE-02"),
            rule("the same Retry-After header", answer.retry_header is None or same_hint(answer), "AD-RATE-02"),
            nothing_given(answer),
        ),
        state,
    )
