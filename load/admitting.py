"""The user of the admission service, and campaigns of plain attempts and polls.

Each behaviour is what one arrival of a campaign does; the requests and what answers mean come from the suite's own
`wire` and dialects. Characters, users and instances are named after the run, so that campaigns never meet.
"""

import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from holdfast.check.history import Outcome
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.dialects import dialect
from holdfast.conformance.admission.identities import Identities, User
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.wire import Request
from holdfast.load.generator import Behaviour, OpenUser, Refused

_ADMIN = "X-Admin-Token"
# Refusals that come before anything was changed; after every other end but success and queued the session is unknown.
_WITHOUT_EFFECT = wire.REASONS - {"INTERNAL_ERROR", "TIMEOUT"}


class AdmissionUser(OpenUser):
    """Speaks the contract in the target's dialect."""

    abstract = True
    answer = Answer

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.codec = dialect(str(self.plan.dialect.get("name", "contract")))
        self.build = str(self.plan.dialect.get("current_build", "dev-build"))
        self.identities = Identities(self.plan.credentials)
        if not self.identities.minted:
            self.unable = "a campaign needs [credentials] auth_secret, to make as many users as it likes"

    def player(self, number: int) -> User:
        return self.identities.mint(f"u-{self.plan.run}-{number}")

    def call(self, request: Request, name: str, user: User | None, *, node: int = 0) -> Answer:
        bearer = {"Authorization": f"Bearer {user.bearer}"} if user else {}
        return self.codec.read(self._asked(request, name, node, bearer))

    def administer(self, request: Request) -> None:
        """Makes an administration call. Raises Refused unless it is taken."""
        admin = {_ADMIN: str(self.plan.credentials.get("admin_token", ""))}
        answer = self._asked(request, "(arranging)", 0, admin)
        if not 200 <= answer.status < 300:
            raise Refused(f"could not arrange it: {request.method} {request.path} was answered {answer.describe()}")

    def _asked(self, request: Request, name: str, node: int, headers: Mapping[str, str]) -> Answer:
        answer = self.ask(request, name, node=node, headers=headers)
        assert isinstance(answer, Answer)
        return answer


def outcome_of(answer: Answer) -> str:
    """Returns what an attempt ended in: the outcome or the reason of a refusal, else the status, else how it broke."""
    if answer.outcome == "failed":
        return answer.reason or "failed"
    if answer.outcome:
        return answer.outcome
    return str(answer.status) if answer.answered else "no answer"


class Admissions(Behaviour):
    """The base of all: an instance with room, characters by number, and attempts that go into the history."""

    user: AdmissionUser

    def __init__(self, user: AdmissionUser) -> None:
        super().__init__(user)
        self.instance = f"i-{self.plan.run}"

    def number(self, name: str) -> float:
        return self.plan.numbers[name]

    def arrange(self) -> None:
        self.user.administer(wire.put_instance(self.instance, capacity=int(self.number("capacity"))))
        self.introduce(self.mine())

    def mine(self) -> range:
        """Returns the numbers of the characters that this worker introduces: one an arrival, unless there are fewer."""
        return range(self.user.first, self.characters, self.user.of)

    @property
    def characters(self) -> int:
        return int(self.plan.numbers.get("characters", 0)) or len(self.plan.due())

    def introduce(self, numbers: Iterable[int]) -> None:
        """Registers a character for each of these numbers."""
        self.user.together([partial(self.user.administer, self._registration(number)) for number in numbers])

    def _registration(self, number: int) -> Request:
        owner = self.user.player(number)
        return wire.put_character(self.character(number), userId=owner.id, suspended=False)

    def character(self, number: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.plan.run}-{number}"))

    def connect(self, number: int, due: float, *, node: int, build: str | None = None, name: str = "connect") -> Answer:
        """Makes an attempt, measured and recorded."""
        character = self.character(number)
        request = self.user.codec.connect(self.instance, character=character, build=build or self.user.build)
        answer = self.user.call(request, name, self.user.player(number), node=node)
        self.user.note(name, due, answer, outcome_of(answer))
        self._recorded(character, answer)
        return answer

    def _recorded(self, character: str, answer: Answer) -> None:
        span = (answer.sent, answer.received)
        if answer.outcome == "success":
            self.user.record(character, "connect", self.instance, None, Outcome.OK, answer.session_id, span)
        elif answer.outcome == "queued":
            self.user.record(character, "enqueue", self.instance, character, Outcome.OK, None, span)
        elif answer.outcome == "failed" and answer.reason in _WITHOUT_EFFECT:
            self.user.record(character, "connect", self.instance, None, Outcome.FAILED, answer.reason, span)
        else:
            self.user.record(character, "connect", self.instance, None, Outcome.UNKNOWN, None, span)

    def leave(self, number: int, session: str, *, node: int) -> None:
        answer = self.user.call(wire.leave(self.instance, session), "leave", self.user.player(number), node=node)
        self.user.note("leave", answer.sent, answer, "left" if answer.status == 200 else outcome_of(answer))
        outcome = Outcome.OK if answer.status == 200 else Outcome.UNKNOWN
        span = (answer.sent, answer.received)
        self.user.record(self.character(number), "leave", self.instance, session, outcome, None, span)


class Direct(Admissions):
    """Connects, stays a while and leaves. Every tenth character tries on two nodes at once, and gets one session."""

    def arrive(self, number: int, due: float) -> None:
        who = number % self.characters
        if number % 10 == 0:
            self.user.later(0.0, self._try, who, due, number + 1)
        self._try(who, due, number)

    def _try(self, who: int, due: float, node: int) -> None:
        answer = self.connect(who, due, node=node)
        if answer.outcome == "success":
            self.user.later(self.number("stay"), lambda: self.leave(who, answer.session_id, node=node + 1))


class Stampede(Admissions):
    """Everybody wants in at once; nobody leaves."""

    def arrive(self, number: int, due: float) -> None:
        self.connect(number, due, node=number)


class Waiting(Admissions):
    """A full instance with a long queue, in which everyone asks again and again for his place."""

    def __init__(self, user: AdmissionUser) -> None:
        super().__init__(user)
        self.places: dict[int, int] = {}
        self.entered: list[tuple[int, Answer]] = []

    def arrange(self) -> None:
        self.user.administer(wire.put_instance(self.instance, capacity=int(self.number("capacity"))))
        crowd = range(self.user.first, self._everyone(), self.user.of)
        self.introduce(crowd)
        self.entered = list(zip(crowd, self.user.together(self._entering(crowd)), strict=True))
        if any(answer.outcome not in ("success", "queued") for _, answer in self.entered):
            raise Refused("could not arrange it: not everyone was let in or told to wait")

    def _everyone(self) -> int:
        return int(self.number("capacity") + self.number("waiting"))

    def _entering(self, crowd: range) -> list[Any]:
        def enter(number: int) -> Answer:
            request = self.user.codec.connect(self.instance, character=self.character(number), build=self.user.build)
            return self.user.call(request, "(arranging)", self.user.player(number), node=number)

        return [partial(enter, number) for number in crowd]

    def arrive(self, number: int, due: float) -> None:
        who = number % self._everyone()
        answer = self.user.call(
            wire.queue_status(self.instance, self.character(who)), "poll", self.user.player(who), node=number
        )
        self.user.note("poll", due, answer, self._seen(who, answer))

    def _seen(self, who: int, answer: Answer) -> str:
        if not answer.answered or answer.status >= 500:
            return str(answer.status) if answer.answered else "no answer"
        if answer.position is None:
            return "not waiting"
        before = self.places.setdefault(who, answer.position)
        self.places[who] = min(before, answer.position)
        return "waiting" if answer.position <= before else "position rose"


class Limited(Admissions):
    """Each user fails again and again, on every node in turn; what comes after the last allowed failure is blocked."""

    def arrange(self) -> None:
        self.user.administer(wire.put_instance(self.instance, capacity=1))
        self.introduce(range(int(self.number("users"))))

    def arrive(self, number: int, due: float) -> None:
        turn, who = divmod(number, int(self.number("users")))
        beyond = turn >= self.number("rate_failures")
        self.connect(who, due, node=turn, build="no-such-build", name="beyond" if beyond else "allowed")
