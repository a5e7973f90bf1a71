"""An attempt to connect: every legal answer in every state, in the order in which the causes are looked at.

Rate lock, ownership, suspension, version, instance, maintenance, reconnection token, existing session, place in line,
drain, capacity (§3, §6, §7, §11 and the resolutions of the catalogue).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.check.walk.vocabulary import Branch, Rule
from holdfast.conformance.admission.values import UUID
from holdfast.conformance.admission.walks import counters, events
from holdfast.conformance.admission.walks.malformed import MALFORMED, STRANGE
from holdfast.conformance.admission.walks.rules import (
    COUNTS,
    FREE,
    OPEN_TO_READING,
    Rows,
    Step,
    any_refusal,
    fresh_token,
    no_offer,
    outcome,
    reason_holds,
    refusal,
    refused,
    remaining,
    throttled,
)
from holdfast.conformance.admission.walks.state import (
    GRACE,
    NEW,
    NOWHERE,
    OPEN,
    OWNERS,
    SILENT,
    Ending,
    Offer,
    Session,
    State,
)
from holdfast.conformance.admission.wire import REASONS, Answer
from holdfast.conformance.shared.walks import rule

Branches = Iterator[Branch[State]]


@dataclass(frozen=True)
class Attempt(Step):
    """One attempt in one state."""

    @property
    def user(self) -> str:
        """Whose credentials it carries."""
        return self.command.get("by") or OWNERS[self.who]

    @property
    def answer(self) -> Answer:
        answer: Answer = self.seen.what.answer
        return answer

    def branches(self) -> Branches:
        by = self.seen.received + self.spans.prompt_never
        for branch in self._branches():
            after = branch.state
            if self.spans.logged:
                after = events.of_attempt(self.state, after, self.who, self.seen.what, by)
            if self.spans.counted:
                after = counters.of_attempt(after, self.seen.what, by)
            yield Branch(branch.rules, after)

    def _branches(self) -> Branches:
        locked = self.state.locked(self.user)
        if locked is not None:
            yield throttled(self.state, locked, self.seen, self.spans)
            return
        causes = list(self._causes())
        if causes:
            reason, rows, counting = causes[0]
            several = len(causes) > 1 and reason != "INVALID_INSTANCE"
            yield from self._refused(refusal(self.answer, reason, *(("AD-ADMIT-08",) if several else rows)), counting)
            return
        room = self.state.room(self.where)
        if room.closed:
            yield from self._refused(refusal(self.answer, "MAINTENANCE", "AD-ADMIT-05"), OPEN_TO_READING)
            if not self._known_here():
                return
        if self.seen.what.token:
            yield from self._reconnect()
        elif self.state.session(self.who) is not None:
            yield from self._in_session()
        else:
            yield from self._plain()

    def _causes(self) -> Iterator[tuple[str, Rows, str]]:
        if self.user != OWNERS[self.who]:
            yield "CHARACTER_NOT_OWNED", ("AD-SEC-01", "AD-SEC-02"), OPEN_TO_READING
        if self.who in self.state.suspended:
            yield "CHARACTER_SUSPENDED", ("AD-ADMIT-07", "AD-REPL-04"), OPEN_TO_READING
        if self.command.get("build"):
            yield "VERSION_MISMATCH", ("AD-VER-01", "AD-ADMIT-07"), COUNTS
        if self.where == NOWHERE:
            yield "INVALID_INSTANCE", ("AD-ADMIT-06",), COUNTS

    def _known_here(self) -> bool:
        """Whether it is in session, waits here or shows a token: whether maintenance comes first is open then."""
        here = self.who in self.state.room(self.where).line
        return here or self.state.session(self.who) is not None or bool(self.seen.what.token)

    def _refused(self, first: Rule, counting: str, *more: Rule) -> Branches:
        return refused(self.state, self.user, self.seen, self.spans, (first, *more), counting)

    def _turned_down(self, *rows: str, more: tuple[Rule, ...] = ()) -> Branches:
        """A token that does not do, of somebody who may connect: the code is open, but not one of another cause."""
        tried = self.seen.what
        own = reason_holds(self.answer, token=bool(tried.token), replace=bool(tried.replace))
        return self._refused(any_refusal(self.answer, *rows), OPEN_TO_READING, own, *more)

    def _admitted(self, session: Session, *rules: Rule, state: State | None = None) -> Branch[State]:
        """The branch of a success: a session that is there, with nobody's failure used up."""
        answer, at = self.answer, self.at
        said = (
            outcome(answer, "success", "AD-ADMIT-01"),
            *rules,
            rule("no reason and no position", answer.reason is None and answer.position is None, "AD-ADMIT-01"),
            remaining(answer, self.state, self.user, self.spans, told=False),
        )
        return Branch(said, (state or self.state).with_session(self.who, session).settled(at))

    def _reconnect(self) -> Branches:
        """§2, §7: the token resumes its own session, once, in time, and nothing else."""
        session, presented = self.state.session(self.who), self.seen.what.token
        valid = session is not None and session.where == self.where and session.token == presented and not session.dead
        if not valid or session is None:
            yield from self._turned_down(*self._void_token())
            return
        yield self._resumed(session)
        if session.mode != GRACE:
            # The server still believes the old socket alive: it may refuse, or take over.
            yield from self._turned_down("AD-RECON-08")

    def _resumed(self, session: Session) -> Branch[State]:
        answer, at = self.answer, self.at
        row = "AD-DRAIN-02" if self.state.room(self.where).draining else "AD-RECON-03"
        rules = (
            rule(f"the session {session.id}", answer.session_id == session.id, row, "AD-RECON-03"),
            fresh_token(answer, (session.token,), "AD-RECON-07"),
        )
        # The client has its session now, so whether a poll still hands it out is open.
        resumed = Session(self.where, session.id, answer.token, NEW, at)
        state = self.state
        if session.mode in (OPEN, SILENT):
            state = self._closing(("AD-RECON-08",))
        return self._admitted(resumed, *rules, state=state)

    def _void_token(self) -> Rows:
        """Returns the rows that make this token void."""
        named, session = self.command.get("token"), self.state.session(self.who)
        if named == "unknown":
            return ("AD-RECON-06",)
        if named.startswith("of ") or (session is not None and session.where != self.where):
            return ("AD-RECON-05",)
        if named == "previous":
            return ("AD-RECON-07", "AD-REPL-02")
        if session is not None and session.dead:
            return ("AD-RECON-04",)
        return ("AD-RECON-04", "AD-RECON-09") if session is None else ("AD-RECON-07",)

    def _closing(self, rows: Rows) -> State:
        """Returns the state in which the server has to close the old socket."""
        ending = Ending(self.who, self.seen.received, self.seen.received + self.spans.prompt_never, rows)
        return replace(self.state, endings=self.state.endings | {ending})

    def _in_session(self) -> Branches:
        session = self.state.session(self.who)
        if session is None:
            raise LookupError("the model has no session of this character")
        if self.seen.what.replace:
            yield from self._replace(session)
        elif session.where != self.where:
            rule_ = refusal(self.answer, "ALREADY_IN_SESSION", "AD-ADMIT-09", "AD-REPL-01")
            yield from self._refused(rule_, OPEN_TO_READING, no_offer(self.answer, "AD-REPL-01"))
        elif self.state.room(self.where).draining:
            rule_ = refusal(self.answer, "ALREADY_IN_SESSION", "AD-ADMIT-08")
            yield from self._refused(rule_, OPEN_TO_READING, no_offer(self.answer, "AD-DRAIN-04"))
        else:
            yield from self._offer(session)

    def _offer(self, session: Session) -> Branches:
        """§7: the attempt is refused with an offer; whether a session in grace is offered too is open."""
        answer, at = self.answer, self.at
        row = "AD-RECON-06" if session.mode == GRACE else "AD-ADMIT-09"
        said = refusal(answer, "ALREADY_IN_SESSION", row, "AD-REPL-01")
        made = rule("a replacement token", bool(UUID.fullmatch(answer.offer)), "AD-REPL-01")
        offered = replace(self.state, offers=self.state.offers | {Offer(answer.offer, self.who, session.id, at)})
        yield Branch((said, made, remaining(answer, self.state, self.user, self.spans, told=False)), offered)
        if session.mode == GRACE:
            yield from self._refused(said, OPEN_TO_READING, no_offer(answer, "AD-REPL-01"))

    def _replace(self, session: Session) -> Branches:
        """§7: only a valid confirmation, for this very session, replaces it."""
        presented, room = self.seen.what.replace, self.state.room(self.where)
        valid = session.where == self.where and any(
            offer.token == presented and offer.who == self.who and offer.session == session.id
            for offer in self.state.offers
        )
        if not valid:
            named = self.command.get("replace")
            rows = ("AD-REPL-03",) if named == "offer" else ("AD-REPL-04", "AD-REPL-02")
            yield from self._turned_down(*rows, more=(no_offer(self.answer, *rows),))
            return
        if room.draining:
            yield from self._refused(refusal(self.answer, "DRAIN_MODE", "AD-DRAIN-04"), OPEN_TO_READING)
            return
        yield self._replaced(session)
        if session.mode == GRACE:
            yield from self._turned_down("AD-REPL-04")

    def _replaced(self, session: Session) -> Branch[State]:
        answer, at = self.answer, self.at
        rules = (
            outcome(answer, "success", "AD-REPL-02", "AD-REPL-05"),
            rule("a new session", bool(answer.session_id) and answer.session_id != session.id, "AD-REPL-02"),
            fresh_token(answer, (session.token,), "AD-REPL-02", "AD-RECON-01"),
        )
        state = self._closing(("AD-REPL-02",)) if session.mode in (OPEN, SILENT) else self.state
        fresh = Session(self.where, answer.session_id, answer.token, NEW, at)
        return self._admitted(fresh, *rules, state=state.without_offers(self.who))

    def _plain(self) -> Branches:
        room = self.state.room(self.where)
        if self.who in room.line:
            row = "AD-DRAIN-02" if room.draining else "AD-QUEUE-05"
            yield self._waiting(self.state, row)
        elif room.draining:
            yield from self._refused(refusal(self.answer, "DRAIN_MODE", "AD-DRAIN-01", "AD-DRAIN-03"), FREE)
        elif self.state.free(self.where) and not room.line:
            yield self._newcomer()
        else:
            row = "AD-QUEUE-06" if self.state.free(self.where) else "AD-ADMIT-02"
            queued = self.state.with_room(self.where, replace(room, line=(*room.line, self.who)))
            peak = max(self.state.peak, len(room.line) + 1) if self.spans.counted else 0
            yield self._waiting(replace(queued.settled(self.at), peak=peak), row)

    def _newcomer(self) -> Branch[State]:
        answer, at = self.answer, self.at
        rules = (
            rule("a session", bool(UUID.fullmatch(answer.session_id)), "AD-ADMIT-01", "AD-DRAIN-03"),
            fresh_token(answer, (), "AD-RECON-01", "AD-ADMIT-01"),
        )
        return self._admitted(Session(self.where, answer.session_id, answer.token, NEW, at), *rules)

    def _waiting(self, after: State, row: str) -> Branch[State]:
        answer, line = self.answer, after.room(self.where).line
        place, depth = line.index(self.who), len(line)
        return Branch(
            (
                outcome(answer, "queued", row, "AD-POLL-01"),
                rule(f"position {place}", answer.position == place, "AD-QUEUE-01", "AD-QUEUE-02", row),
                rule(f"depth {depth}", answer.depth in (None, depth), "AD-POLL-01"),
                rule("no session", not answer.session_id, "AD-POLL-01"),
                remaining(answer, self.state, self.user, self.spans, told=False),
            ),
            after,
        )


@dataclass(frozen=True)
class Malformed(Step):
    """An attempt that lacks what it needs changes nothing, but may use up a failure of whoever it shows to be."""

    @property
    def answer(self) -> Answer:
        answer: Answer = self.seen.what.answer
        return answer

    def branches(self) -> Branches:
        for branch in self._branches():
            yield Branch(branch.rules, self._noted(branch.state))

    def _branches(self) -> Branches:
        user, reason = OWNERS[self.who], MALFORMED[self.command.get("call")]
        counting = FREE if reason == STRANGE else OPEN_TO_READING
        yield from refused(self.state, user, self.seen, self.spans, (self._said(reason),), counting)
        locked = self.state.locked(user)
        if locked is not None and reason != STRANGE:
            yield throttled(self.state, locked, self.seen, self.spans)

    def _said(self, reason: str) -> Rule:
        answer = self.answer
        if reason:
            return refusal(answer, reason, "AD-ADMIT-06")
        coded = answer.outcome == "failed" and answer.reason in REASONS
        held = answer.status < 500 and (coded or answer.status >= 400)
        return rule("failed with a code of the table, or 400", held, "AD-ADMIT-06")

    def _noted(self, state: State) -> State:
        """Whether such an attempt is noted under the character that it names, or counted, is open."""
        by = self.seen.received + self.spans.prompt_never
        if self.spans.logged:
            lines = events.lines_of(self.who, self.answer, token=False)
            state = events.expecting(state, *lines, by=by, due=False)
        return counters.of_malformed(state, self.answer, by) if self.spans.counted else state
