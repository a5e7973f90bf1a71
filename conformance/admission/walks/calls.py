"""Every other call, what sockets do, and what is looked at after each step."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.check.walk.vocabulary import Branch, Rule
from holdfast.conformance.admission.walks import counters, events
from holdfast.conformance.admission.walks.rules import Step
from holdfast.conformance.admission.walks.state import GRACE, NEW, OPEN, SILENT, Ending, Session, State
from holdfast.conformance.admission.wire import Answer, turned_away
from holdfast.conformance.shared.walks import Span, rule

Branches = Iterator[Branch[State]]


@dataclass(frozen=True)
class Called:
    """A call that names something by its id: the answer, and the id that was sent."""

    answer: Answer
    id: str


@dataclass(frozen=True)
class Attached:
    """A socket that was asked for: whether it was accepted, and what its first frame said."""

    id: str
    accepted: bool
    frame: Mapping[str, Any]


@dataclass(frozen=True)
class Sockets:
    """What the client's sockets look like: those of running sessions, and those that were superseded."""

    open: Mapping[str, bool]
    # Since when the oldest of them that is still open has been superseded.
    superseded: Mapping[str, float]


@dataclass(frozen=True)
class Records:
    """What Redis holds: the session of each character, the line of each instance, the sessions counted there."""

    markers: Mapping[str, str]
    lines: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Call(Step):
    """One call, or one look, in one state."""

    def branches(self) -> Branches:
        calls: Mapping[str, Callable[[], Branches]] = {
            "leave": self._leave,
            "unqueue": self._unqueue,
            "cancel": self._cancel,
            "attach": self._attach,
            "drop": self._drop,
            "close": self._close,
            "mute": self._mute,
            "beat": self._beat,
            "drain": self._room,
            "maintain": self._room,
            "resize": self._room,
            "suspend": self._suspend,
            "kill": self._kill,
            "restart": self._restart,
            "pause": self._pause,
            "poll": self._poll,
            "sockets": self._sockets,
            "records": self._records,
            "events": self._events,
            "metrics": self._metrics,
        }
        return calls[self.command.name]()

    def _ended(self) -> State:
        """The state after a deliberate leave."""
        return self._logged(self.state.ended(self.who).settled(self.at), "user")

    def _logged(self, state: State, reason: str) -> State:
        by = self.at.hi + self.spans.prompt_never
        line = (events.DISCONNECTED, self.who, reason)
        return events.expecting(state, line, by=by) if self.spans.logged else state

    def _leave(self) -> Branches:
        """A deliberate leave ends the session at once; one that is over can't be left."""
        called: Called = self.seen.what
        session = self.state.session(self.who)
        done = rule("status 200", called.answer.status == 200, "AD-RECON-09")
        if session is None or session.id != called.id or self.command.get("by"):
            row = "AD-SEC-03" if self.command.get("by") else "AD-RECON-09"
            yield Branch((_away(called.answer, row),), self.state)
            return
        yield Branch((done,), self._ended())
        if session.mode == GRACE:  # whether a session that nobody is connected to can be left is open
            yield Branch((_away(called.answer, "AD-RECON-09"),), self.state)

    def _attach(self) -> Branches:
        seen: Attached = self.seen.what
        session = self.state.session(self.who)
        accepted = rule("the socket is accepted", seen.accepted, "AD-ADMIT-01", "AD-POLL-05")
        if session is None or session.id != seen.id or session.mode == GRACE:
            in_grace = session is not None and session.mode == GRACE and session.id == seen.id
            rows = ("AD-RECON-06",) if in_grace else ("AD-RECON-09", "AD-REPL-02")
            yield Branch((_not(accepted, *rows),), self.state)
            return
        opened = replace(session, mode=OPEN, since=self.at, shown=False)
        named = rule("a first frame for this session", seen.frame.get("sessionId") in (None, session.id), "AD-ADMIT-01")
        if session.mode == NEW:
            yield Branch((accepted, named), self.state.with_session(self.who, opened))
            return
        yield Branch((_not(accepted, "AD-RECON-08"),), self.state)
        ending = Ending(self.who, self.at.hi, self.at.hi + self.spans.prompt_never, ("AD-RECON-08",))
        taken = replace(self.state, endings=self.state.endings | {ending})
        yield Branch((accepted, named), taken.with_session(self.who, opened))

    def _drop(self) -> Branches:
        """A lost socket starts the grace, when the server notices."""
        session = self.state.session(self.who)
        noticed = Span(self.seen.sent, self.seen.received)
        if session is None:
            yield Branch((), self.state)
            return
        in_grace = self.state.with_session(self.who, replace(session, mode=GRACE, since=noticed))
        yield Branch((), self._logged(in_grace, "network"))

    def _close(self) -> Branches:
        """A clean close is a leave."""
        yield Branch((), self._ended())

    def _mute(self) -> Branches:
        session = self.state.session(self.who)
        last = Span(self.seen.sent - self.spans.heartbeat / 2, self.seen.received)
        if session is None:
            yield Branch((), self.state)
            return
        yield Branch((), self.state.with_session(self.who, replace(session, mode=SILENT, since=last)))

    def _beat(self) -> Branches:
        session = self.state.session(self.who)
        if session is None or session.mode != OPEN:
            yield Branch((), self.state)
            return
        yield Branch((rule("the heartbeat is acknowledged", bool(self.seen.what), "AD-STALE-02"),), self.state)

    def _unqueue(self) -> Branches:
        answer: Answer = self.seen.what.answer
        if self.who not in self.state.room(self.where).line or self.command.get("by"):
            row = "AD-SEC-03" if self.command.get("by") else "AD-QUEUE-08"
            yield Branch((_away(answer, row),), self.state)
            return
        out = self.state.out_of_line(self.who, self.where).settled(self.at)
        yield Branch((rule("status 200", answer.status == 200, "AD-QUEUE-08"),), out)

    def _cancel(self) -> Branches:
        called: Called = self.seen.what
        offer = next((each for each in self.state.offers if each.token == called.id), None)
        if offer is None:
            # Expired, used, or for a session that is over: what a target answers then is open, and nothing changes.
            yield Branch((), self.state)
            return
        gone = replace(self.state, offers=self.state.offers - {offer})
        yield Branch((rule("status 200", called.answer.status == 200, "AD-REPL-03"),), gone)

    def _room(self) -> Branches:
        room, on = self.state.room(self.where), self.command.flag("on")
        match self.command.name:
            case "drain":
                changed = replace(room, draining=on)
            case "maintain":
                # Whether an instance in maintenance promotes is open: what has waited through it is due anew after it.
                changed = replace(room, closed=on, since=None)
            case _:
                changed = replace(room, capacity=self.command.number("capacity"))
        yield Branch((), self.state.with_room(self.where, changed).settled(self.at))

    def _suspend(self) -> Branches:
        some = {self.who}
        suspended = self.state.suspended | some if self.command.flag("on") else self.state.suspended - some
        yield Branch((), replace(self.state, suspended=suspended).settled(self.at))

    def _kill(self) -> Branches:
        """Sockets of a dead node are gone, and nobody has noted it: their sessions are silent from now on."""
        state = replace(self.state, down=self.state.down | {self.command.get("node")})
        last = Span(self.seen.sent - self.spans.heartbeat / 2, self.seen.received)
        for who in self.seen.what:
            session = state.session(who)
            if session is not None and session.mode == OPEN:
                state = state.with_session(who, replace(session, mode=SILENT, since=last))
        yield Branch((), counters.lost(state, self.seen.received))

    def _restart(self) -> Branches:
        back = replace(self.state, down=self.state.down - {self.command.get("node")})
        yield Branch((), counters.lost(back, self.seen.received))

    def _pause(self) -> Branches:
        """A node that stands still for less than it takes to miss a heartbeat changes nothing; its own work waits."""
        yield Branch((), self.state.delayed(self.seen.received - self.seen.sent))

    def _poll(self) -> Branches:
        answer: Answer = self.seen.what
        line, session = self.state.room(self.where).line, self.state.session(self.who)
        if self.who in line:
            yield Branch(_place(answer, line, self.who), self.state)
        elif session is not None and session.where == self.where:
            yield from self._poll_in_session(answer, session)
        else:
            yield Branch((rule("status 404", answer.status == 404, "AD-POLL-01", "AD-QUEUE-12"),), self.state)

    def _poll_in_session(self, answer: Answer, session: Session) -> Branches:
        """A promoted client is told its session until its first socket; any other may be, or not."""
        told = answer.status == 200 and answer.fields.get("state") == "admitted"
        known = replace(session, id=session.id or answer.session_id, token=session.token or answer.token)
        same = (answer.session_id, answer.token) == (known.id, known.token)
        handed = rule("state admitted, with its session", told and bool(known.id), "AD-POLL-05", "AD-QUEUE-10")
        again = rule("the same session and token", same, "AD-POLL-05")
        if session.shown and session.mode == NEW:
            yield Branch((handed, again), self.state.named(self.who, known))
            return
        yield Branch((rule("status 404", answer.status == 404, "AD-POLL-01"),), self.state)
        yield Branch((rule("its own session", told and answer.session_id == session.id, "AD-POLL-05"),), self.state)

    def _sockets(self) -> Branches:
        seen: Sockets = self.seen.what
        rules: list[Rule] = []
        for who, is_open in seen.open.items():
            session = self.state.session(who)
            if session is not None and session.mode == OPEN:
                rules.append(rule(f"{who}'s socket is open", is_open, "AD-STALE-02", "AD-DRAIN-02", "AD-REPL-01"))
        late = [ending for ending in self.state.endings if ending.latest < self.seen.sent]
        for ending in late:
            closed = seen.superseded.get(ending.who, math.inf) > ending.at
            rules.append(Rule(ending.rows, f"{ending.who}'s old socket is closed", closed, late=True))
        yield Branch(tuple(rules), replace(self.state, endings=self.state.endings - set(late)))

    def _metrics(self) -> Branches:
        """What Prometheus is told, on a deployment where nobody else is."""
        return counters.look(self.state, self.seen)

    def _events(self) -> Branches:
        return events.look(self.state, self.seen)

    def _records(self) -> Branches:
        seen: Records = self.seen.what
        state = self.state
        rules: list[Rule] = []
        for who, marker in seen.markers.items():
            session = state.session(who)
            held = bool(marker) if session and not session.id else marker == (session.id if session else "")
            rules.append(
                rule(f"the marker of {who} {'set' if session else 'not set'}", held, "AD-STATE-01", "AD-ADMIT-04")
            )
        for where, line in seen.lines.items():
            room = state.room(where)
            rules.append(rule(f"line {', '.join(room.line) or 'empty'} on {where}", line == room.line, "AD-QUEUE-01#2"))
        for where, count in seen.counts.items():
            inside = state.inside(where)
            rules.append(rule(f"{inside} inside {where}", count == inside, "AD-ADMIT-02#2", "AD-STALE-04#4"))
        yield Branch(tuple(rules), state)


def _place(answer: Answer, line: tuple[str, ...], who: str) -> tuple[Rule, ...]:
    queued = answer.status == 200 and answer.fields.get("state", "queued") == "queued"
    return (
        rule(f"{who} still waits", queued, "AD-POLL-01", "AD-QUEUE-10", "AD-QUEUE-11"),
        rule(f"position {line.index(who)}", answer.position == line.index(who), "AD-QUEUE-01", "AD-POLL-04"),
        rule(f"depth {len(line)}", answer.depth == len(line), "AD-POLL-01"),
        rule("no session", not answer.session_id, "AD-POLL-05"),
    )


def _away(answer: Answer, row: str) -> Rule:
    held = turned_away().matches(answer) and answer.outcome != "success"
    return rule("a refusal, or nothing done", held, row)


def _not(accepted: Rule, *rows: str) -> Rule:
    return rule("the socket is refused", not accepted.held, *rows)
