"""Our user with the same request: due, sent, read in the suite's words, counted and put into the history."""

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.check.history import Outcome
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.wire import Request
from holdfast.load.generator import Behaviour, OpenUser
from holdfast.load.locustfile import options, plan_of_this_run
from holdfast.load.messages import take_part
from tests.bench.sent import BODY


class Connecting(Behaviour):
    def arrive(self, number: int, due: float) -> None:
        request = Request("POST", "/instances/i/connect", BODY)
        answer = self.user.ask(request, "connect", headers={"Authorization": "Bearer x"})
        assert isinstance(answer, Answer)
        assert answer.outcome == "success"
        self.user.note("connect", due, answer, answer.outcome)
        span = (answer.sent, answer.received)
        self.user.record(f"c{number}", "connect", "i", None, Outcome.OK, answer.session_id, span)


class Ours(OpenUser):
    answer = Answer
    behaviours: ClassVar[Mapping[str, Any]] = {"direct": Connecting}


options("admission")
take_part(plan_of_this_run)
