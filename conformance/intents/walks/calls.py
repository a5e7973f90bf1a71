"""Every other call of a client: stops, and requests that are refused and change nothing."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.check.walk.vocabulary import Branch, Command, Seen
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.walks.clients import CLIENTS
from holdfast.conformance.intents.walks.commands import NOBODIES, START, UNKNOWN, key_of
from holdfast.conformance.intents.walks.malformed import MALFORMED
from holdfast.conformance.intents.walks.rules import conflict, refusal, shows, tells_nothing
from holdfast.conformance.intents.walks.sights import Stopped
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.starts import mapped
from holdfast.conformance.intents.walks.state import READY, STOPPED, State
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared.walks import Span, rule, span_of

Branches = Iterator[Branch[State]]
# Statuses of a stop of nobody's session: accepted, as the public implementation does, or not found.
OF_NOBODY = (202, 404)


def stop(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A stop ends what runs and prevents what waits; one of a session that is over has no effect (3.2 step 7)."""
    sight: Stopped = seen.what
    at = span_of(seen)
    session = state.session(sight.id)
    told = state.announcing(wire.STOP_EVENT, sight.id, due=False) if sight.id else state
    if command.get("which") == UNKNOWN:
        yield Branch((rule("202 or 404", sight.answer.status in OF_NOBODY, "IN-RUN-08"),), told)
        return
    taken = rule("202", sight.answer.status == 202, "IN-RUN-06", "IN-RUN-08")
    if session is None or not session.live:
        yield Branch((taken,), told)
    elif not state.attended(session):
        yield Branch((taken,), told.having(replace(session, stopping=True)))
    else:
        ended = session.ended(STOPPED, Span(at.lo, sight.until + spans.linger))
        rules = [taken, *shows(ended, sight.shown, spans.running, "IN-RUN-06" if session.begun else "IN-RUN-08")]
        if session.mode != READY:
            rules.append(rule("a session that never runs after its stop", not sight.ran, "IN-RUN-08"))
        yield Branch(tuple(rules), told.having(ended))


def refused(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """Who is nobody gets 401, who may not write 403; neither learns or changes anything (3.1 step 1, 6)."""
    answer: Answer = seen.what
    row = "IN-AUTH-01" if command.get("by") in NOBODIES else "IN-AUTH-02"
    rows = (row, "IN-AUTH-03", *(["IN-SIDE-02"] if command.get("what") != START else []))
    status = 401 if command.get("by") in NOBODIES else 403
    silent = tells_nothing(answer, state.sessions, "IN-AUTH-03")
    yield Branch((*refusal(answer, status, *rows), silent), state)


def malformed(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A body that is no intent gets 400 from who may post one, and nobody else learns that it is none (3.1 step 2)."""
    answer: Answer = seen.what
    by = command.get("by")
    status = 400 if not by else 401 if by in NOBODIES else 403
    row = "IN-AUTH-03" if by else MALFORMED[command.get("call")]
    yield Branch((*refusal(answer, status, row), tells_nothing(answer, state.sessions, "IN-AUTH-03")), state)


def forwarded(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A client outside the LAN is refused whatever it posts; one inside comes to the validation of its body (6)."""
    answer: Answer = seen.what
    client = CLIENTS[command.get("client")]
    status = 400 if client.inside else 403
    held = answer.status == status and not answer.session_id
    yield Branch((rule(f"{status} without a session", held, client.row),), state)


def lost(state: State, command: Command, seen: Seen, spans: Spans) -> Branches:
    """A start that can't be published is refused, and leaves nothing behind (3.1 steps 3 to 6)."""
    answer: Answer = seen.what
    key, at = key_of(command, spans), span_of(seen)
    taken = state.taken(key.target, at) if state.phase == 1 and key.live else False
    if taken is not False:
        yield Branch(conflict(answer, spans.retry_after, "IN-PHASE-01"), state)
    if taken is not True:
        yield Branch(
            (rule("503 without a session", answer.status == 503 and not answer.session_id, "IN-QUEUE-07"),), state
        )
        for found in filter(None, mapped(state, key, at, spans)):
            yield Branch((rule(f"202 with {found.id}", answer.session_id == found.id, "IN-IDEM-01"),), state)


def pace(state: State, command: Command, _seen: Seen, _spans: Spans) -> Branches:
    """The pipelines of a target behave otherwise from now on."""
    yield Branch((), state.with_pace(command.get("target"), command.get("how")))


def redeliver(state: State, _command: Command, _seen: Seen, _spans: Spans) -> Branches:
    """A start event that comes again changes nothing, whatever has become of its session (3.2 step 1)."""
    yield Branch((), state)


def ask(state: State, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A session that never was is not found."""
    answer: Answer = seen.what
    yield Branch((rule("404", answer.status == 404, "IN-QUEUE-01"),), state)
