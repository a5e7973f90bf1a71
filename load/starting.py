"""The user of intents, and what its campaigns have in common: starts, verdicts and stops, which go into the history.

Requests and what answers mean come from the suite's own `wire`; `dialects` spells intents as the target wants them.
Channels are named after the run, so that campaigns never meet. What the history holds:

- `start`: a 202 shows that the session with the id of its answer is the one of its intent (channel, profile).
- `run`: a poll shows that this session runs on its channel.
- `stop`: from then on the session may end; a session that ends by itself has one too, from when it was last alive.
- `ready`: a start and the first poll that shows its session running, for the time that a recovery takes.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import gevent

from holdfast.check.history import Outcome
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.dialects import ADAPTERS
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared.wire import Request
from holdfast.load.generator import Behaviour, OpenUser, Refused

_LOOK_EVERY = 0.05
_REF = "1:0:19:{}:3EF:1:C00000:0:0:0:"
_PROFILES = ("universal", "high", "low", "mobile")


class Intent(NamedTuple):
    """What a start asks for: a channel or a recording, and the rest of what its key is made of."""

    target: str
    profile: str


class IntentsUser(OpenUser):
    """Posts intents under the write tokens in turn, and polls with the read token."""

    abstract = True
    answer = Answer

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        given = self.plan.credentials
        self.writers = [str(given[name]) for name in sorted(given) if name.startswith("write") and given[name]]
        self.reader = str(given.get("read", ""))
        spelling = str(self.plan.dialect.get("intent_adapter", "default"))
        self.adapter = ADAPTERS[spelling](self.plan.dialect, str)
        if not (self.writers and self.reader):
            self.unable = "a campaign needs [credentials] write and read"

    def post(self, body: Any, name: str, number: int, token: str | None = None) -> Answer:
        """Posts an intent on each node in turn; without a token that of each writer in turn."""
        bearer = self.writers[number % len(self.writers)] if token is None else token
        return self.call(wire.intent(body), name, number, bearer)

    def look(self, session_id: str, number: int) -> Answer:
        return self.call(wire.poll(session_id), "(looking)", number, self.reader)

    def call(self, request: Request, name: str, node: int, token: str) -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.ask(request, name, node=node, headers=headers)
        assert isinstance(answer, Answer)
        return answer


def said(answer: Answer) -> str:
    """Returns what became of a start: accepted, the status of a refusal, or no answer."""
    if wire.accepted().matches(answer):
        return "accepted"
    return str(answer.status) if answer.answered else "no answer"


def together(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Makes all calls at once and returns their results in order."""
    jobs = [gevent.spawn(call) for call in calls]
    return [job.get() for job in jobs]


class Starting(Behaviour):
    """The base of all."""

    user: IntentsUser

    def __init__(self, user: IntentsUser) -> None:
        super().__init__(user)
        self.profiles = [str(name) for name in self.plan.dialect.get("profiles", _PROFILES)]
        self.running_states = frozenset(map(str.upper, self.plan.dialect.get("running_states", ["READY"])))
        # When each session was asked to stop; what polls show of it from then on proves nothing.
        self.stops: dict[str, float] = {}

    def number(self, name: str) -> float:
        return self.plan.numbers[name]

    def channel(self, number: int) -> str:
        """Returns a service reference that no other campaign uses."""
        code = (int(self.plan.run, 16) + number) % (1 << 32)
        return str(self.plan.dialect.get("service_ref", _REF)).format(f"{code:08X}")

    # --- starts

    def start(self, intent: Intent, number: int, due: float, name: str = "start") -> Answer:
        """Starts a channel, measured and recorded."""
        return self.asked(self.user.adapter.start(*intent), intent, number, due, name)

    def asked(self, body: Any, intent: Intent, number: int, due: float, name: str = "start") -> Answer:
        answer = self.user.post(body, name, number)
        self.user.note(name, due, answer, said(answer))
        self.started(intent, answer)
        return answer

    def started(self, intent: Intent, answer: Answer) -> None:
        if said(answer) == "accepted":
            self.recorded("start", intent, answer.session_id, (answer.sent, answer.received))
        else:
            # A refusal is of the API, which makes no session then; without an answer there may be one.
            outcome = Outcome.FAILED if 400 <= answer.status < 500 else Outcome.UNKNOWN
            self.recorded("start", intent, "", (answer.sent, answer.received), outcome)

    def recorded(
        self, what: str, intent: Intent, session_id: str, span: tuple[float, float], outcome: Outcome = Outcome.OK
    ) -> None:
        client = session_id or "nobody"
        self.user.record(client, what, intent.target, intent.profile, outcome, session_id or None, span)

    # --- what becomes of them

    def decided(self, intent: Intent, start: Answer, number: int) -> Answer:
        """Polls a session until it runs or has ended, or until give_up; returns the last answer."""
        session_id, alive = start.session_id, start.sent
        until = time.monotonic() + self.number("give_up")
        while True:
            seen = self.user.look(session_id, number)
            if seen.terminal:
                self.recorded("stop", intent, session_id, (alive, seen.received))
                return seen
            if self.runs(seen):
                self._running(intent, session_id, seen)
                return seen
            if time.monotonic() > until:
                return seen
            alive = seen.sent if seen.state else alive
            gevent.sleep(_LOOK_EVERY)

    def runs(self, seen: Answer) -> bool:
        return seen.state in self.running_states

    def _running(self, intent: Intent, session_id: str, seen: Answer) -> None:
        if seen.sent < self.stops.get(session_id, float("inf")):
            self.recorded("run", intent, session_id, (seen.sent, seen.received))

    def verdict(self, seen: Answer) -> str:
        """Returns what a session was decided to be, in a word."""
        if self.runs(seen):
            return "running"
        if seen.rejected:
            return "busy" if seen.busy else "no tuner"
        return f"ended {seen.state} {seen.reason}".rstrip() if seen.terminal else "undecided"

    def tell_verdict(self, start: Answer, seen: Answer, name: str = "verdict") -> str:
        """Counts a verdict, with its latency from the 202."""
        word = self.verdict(seen)
        self.tell_since(name, start.received, seen, word)
        return word

    def tell_since(self, name: str, since: float, seen: Answer, outcome: str) -> None:
        """Counts what polls have shown; the target had the whole time for it, not only that of the last poll."""
        self.user.note(name, since, replace(seen, sent=since), outcome)

    # --- stops

    def stop(self, intent: Intent, session_id: str, number: int) -> None:
        """Stops a session and waits until it has ended, measured and recorded."""
        self.stops[session_id] = time.monotonic()
        answer = self.user.post(self.user.adapter.stop(session_id), "stop", number)
        # Also one that was refused or lost may have been carried out; the rule takes it as the earliest end.
        self.recorded("stop", intent, session_id, (self.stops[session_id], answer.received))
        until, seen = time.monotonic() + self.number("give_up"), answer
        while not seen.terminal and time.monotonic() < until:
            gevent.sleep(_LOOK_EVERY)
            seen = self.user.look(session_id, number)
        self.tell_since("stop", answer.sent, seen, "ended" if seen.terminal else "not ended")

    # --- arranging

    def running(self, intent: Intent, number: int) -> Answer:
        """Starts a channel and waits until it runs; returns the answer to the start. Raises Refused."""
        start = self.user.post(self.user.adapter.start(*intent), "(arranging)", number)
        if said(start) != "accepted":
            raise Refused(f"could not arrange it: a start was answered {start.describe()}")
        seen = self.user.look(start.session_id, number)
        until = time.monotonic() + self.number("give_up")
        while not self.runs(seen) and not seen.terminal and time.monotonic() < until:
            gevent.sleep(_LOOK_EVERY)
            seen = self.user.look(start.session_id, number)
        if not self.runs(seen):
            raise Refused(f"could not arrange it: a session that runs; a poll shows {seen.describe()}")
        return start


class Herding(Starting):
    """Each arrival is a round: a herd of equal starts on a fresh channel, over all nodes and users at once."""

    def arrive(self, number: int, due: float) -> None:
        intent = Intent(self.channel(number), self.profiles[0])
        answers = self.herd([intent] * int(self.number("herd_size")), due)
        sessions = {each.session_id: each for each in answers if said(each) == "accepted"}
        words = "one session" if len(sessions) == 1 else f"{len(sessions)} sessions"
        self.user.note("round", due, answers[-1], words)
        together([partial(self._seen_off, intent, start, number) for start in sessions.values()])

    def _seen_off(self, intent: Intent, start: Answer, number: int) -> None:
        """Waits for the verdict on a session and stops it; what nobody decides is not waited for a second time."""
        seen = self.decided(intent, start, number)
        if self.tell_verdict(start, seen) == "running":
            self.stop(intent, start.session_id, number)

    def herd(self, intents: Sequence[Intent], due: float) -> list[Answer]:
        return together([partial(self.start, intent, place, due) for place, intent in enumerate(intents)])


class Rivalling(Herding):
    """Each arrival is a round: a herd in several profiles on one fresh channel; one session runs, others are busy."""

    def arrive(self, number: int, due: float) -> None:
        profiles = self.profiles[: int(self.number("mixed_profiles"))]
        channel = self.channel(number)
        wanted = [Intent(channel, profile) for profile in profiles] * int(self.number("mixed_per_profile"))
        pairs = list(zip(wanted, self.herd(wanted, due), strict=True))
        sessions = {each.session_id: (intent, each) for intent, each in pairs if said(each) == "accepted"}
        shared = any(sessions[each.session_id][0] != intent for intent, each in pairs if each.session_id in sessions)
        words = together([partial(self._word, intent, start, number) for intent, start in sessions.values()])
        won = [session_id for session_id, word in zip(sessions, words, strict=True) if word == "running"]
        lost = words.count("busy")
        fair = len(won) == 1 and lost == len(words) - 1 and not shared
        told = f"{len(won)} run, {lost} of {len(words)} busy" + (", profiles share a session" if shared else "")
        self.user.note("round", due, pairs[-1][1], "one runs" if fair else told)
        for session_id in won:
            self.stop(sessions[session_id][0], session_id, number)

    def _word(self, intent: Intent, start: Answer, number: int) -> str:
        return self.tell_verdict(start, self.decided(intent, start, number))
