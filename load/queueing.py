"""Campaigns about the queue of the admission service, and about what it counts."""

import random
import time

import gevent

from holdfast.check.history import Outcome
from holdfast.check.observe import Metrics
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.wire import Request
from holdfast.load.admitting import AdmissionUser, Direct, Waiting, outcome_of
from holdfast.load.generator import Refused

# After a release so many of those who wait longest are asked, so often, until one of them is in.
_HEADS, _LOOKS, _LOOK_EVERY = 3, 20, 0.05
_ATTEMPTS = "connection_attempt_total"


class Churning(Waiting):
    """Each arrival lets somebody leave; everyone who waits asks for his place now and then, until he is in.

    Who was let in, and when, is known only from what polls say: after the last one that said "waiting" and before the
    first that said "admitted".
    """

    def __init__(self, user: AdmissionUser) -> None:
        super().__init__(user)
        self.inside: list[tuple[int, str]] = []
        # In the order of the queue: who waits, and when he was last seen to.
        self.waiting: dict[int, float] = {}

    def begin(self) -> None:
        for who, answer in sorted(self.entered, key=lambda pair: pair[1].position or 0):
            self._recorded(self.character(who), answer)
            if answer.outcome == "success":
                self.inside.append((who, answer.session_id))
            else:
                self.waiting[who] = answer.sent
                self.user.later(random.uniform(0, self.number("poll_interval")), self._poll, who)

    def _poll(self, who: int) -> None:
        if who in self.waiting and not self._is_in(who) and not self.user.over:
            self.user.later(self.number("poll_interval"), self._poll, who)

    def arrive(self, number: int, due: float) -> None:  # noqa: ARG002 - a release is measured by itself
        if not self.inside:
            return
        who, session = self.inside.pop(0)
        self.leave(who, session, node=number)
        for _ in range(_LOOKS):
            heads = list(self.waiting)[:_HEADS]
            seen = [self._is_in(head) for head in heads]
            if not heads or any(seen):
                return
            gevent.sleep(_LOOK_EVERY)

    def _is_in(self, who: int) -> bool:
        """Asks for the place of somebody; notes that he is in if he is."""
        if who not in self.waiting:
            return True
        before = self.waiting[who]
        request = wire.queue_status(self.instance, self.character(who))
        answer = self.user.call(request, "poll", self.user.player(who), node=who)
        said = self._said(answer)
        self.user.note("poll", answer.sent, answer, said)
        if said == "waiting":
            self.waiting[who] = answer.sent
        if said == "gone":
            answer = self._knocked(who)
            said = "admitted" if answer.reason == "ALREADY_IN_SESSION" else said
        if said == "admitted" and self.waiting.pop(who, None) is not None:
            self._let_in(who, answer, (before, answer.received))
        return said == "admitted"

    def _said(self, answer: Answer) -> str:
        if answer.state == "admitted" and answer.status == 200:
            return "admitted"
        if answer.position is not None:
            return "waiting"
        return "gone" if answer.status == 404 else outcome_of(answer)

    def _knocked(self, who: int) -> Answer:
        """Asks a target whose polls do not show that somebody is in."""
        request = self.user.codec.connect(self.instance, character=self.character(who), build=self.user.build)
        return self.user.call(request, "(looking)", self.user.player(who), node=who)

    def _let_in(self, who: int, answer: Answer, span: tuple[float, float]) -> None:
        character, session = self.character(who), answer.session_id
        self.user.record(character, "serve", self.instance, character, Outcome.OK, None, span)
        if session:
            self.user.record(character, "connect", self.instance, None, Outcome.OK, session, span)
            self.inside.append((who, session))

    def finish(self) -> None:
        for who in list(self.waiting):
            if not self._is_in(who) and who in self.waiting:
                now, character = time.monotonic(), self.character(who)
                self.user.record(
                    character, "waits", self.instance, character, Outcome.OK, None, (self.waiting[who], now)
                )


class Audited(Direct):
    """Direct admissions; in the end the target has counted as many attempts as were made."""

    def arrange(self) -> None:
        if self.user.of > 1:
            raise Refused("could not arrange it: who compares a counter has to be the only one who counts; one process")
        if not self.plan.metrics:
            raise Refused("could not arrange it: [observe] metrics is not there")
        super().arrange()
        self.before = self._counted()
        self.made = 0

    def connect(self, number: int, due: float, *, node: int, build: str | None = None, name: str = "connect") -> Answer:
        self.made += 1
        return super().connect(number, due, node=node, build=build, name=name)

    def finish(self) -> None:
        counted = self._counted() - self.before
        answer = self.user.call(Request("GET", self.plan.metrics), "audit", None)
        said = "equal" if counted == self.made else f"{counted:g} counted of {self.made}"
        self.user.note("audit", answer.sent, answer, said)

    def _counted(self) -> float:
        nodes = range(len(self.plan.nodes))
        answers = [self.user.call(Request("GET", self.plan.metrics), "(counting)", None, node=node) for node in nodes]
        return sum(Metrics.parse(answer.text).total(_ATTEMPTS) for answer in answers)
