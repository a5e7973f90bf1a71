"""Campaigns about sessions that come and go, and about what must leave them alone: replays, rivals and refusals."""

import random
from functools import partial
from typing import Any

import gevent

from holdfast.check.finding import NotApplicable
from holdfast.conformance.intents.wire import Answer
from holdfast.load.generator import Refused
from holdfast.load.starting import Intent, IntentsUser, Starting, said

# A bearer token that no target knows.
_UNKNOWN = "nobody-has-this-token"
# Of so many arrivals one is a rival; of so many one is valid.
_RIVALS, _VALID = 5, 26


class Cycling(Starting):
    """Each arrival takes a channel that nobody uses now, starts it, lets it run for a while and stops it."""

    def __init__(self, user: IntentsUser) -> None:
        super().__init__(user)
        channels = max(int(self.plan.numbers.get("channels", 0)), user.of)
        self.idle = list(range(user.first, channels, user.of))
        self.draw = random.Random(self.plan.seed + user.first)

    def arrive(self, number: int, due: float) -> None:
        if not self.idle:
            return
        place = self.idle.pop(self.draw.randrange(len(self.idle)))
        try:
            self.cycle(Intent(self.channel(place), self.profiles[0]), number, due)
        finally:
            self.idle.append(place)

    def cycle(self, intent: Intent, number: int, due: float) -> None:
        start = self.start(intent, number, due)
        if said(start) != "accepted":
            return
        seen = self.decided(intent, start, number)
        word = self.tell_verdict(start, seen)
        if word == "running":
            self.recorded("ready", intent, start.session_id, (start.sent, seen.received))
            gevent.sleep(self.draw.uniform(0, self.plan.numbers.get("stay", 0.0)))
            self.stop(intent, start.session_id, number)


class Replaying(Starting):
    """One session runs; each arrival is the same start again and gets the same session."""

    def arrange(self) -> None:
        self.intent = Intent(self.channel(self.user.first), self.profiles[0])
        self.holder = self.running(self.intent, self.user.first)

    def begin(self) -> None:
        seen = self.user.look(self.holder.session_id, 0)
        if self.runs(seen):
            self.recorded("run", self.intent, self.holder.session_id, (seen.sent, seen.received))

    def arrive(self, number: int, due: float) -> None:
        answer = self.user.post(self.user.adapter.start(*self.intent), "replay", number)
        self.started(self.intent, answer)
        word = said(answer)
        if word == "accepted":
            word = "the session" if answer.session_id == self.holder.session_id else "another session"
        self.user.note("replay", due, answer, word)

    def finish(self) -> None:
        seen = self.user.look(self.holder.session_id, 0)
        self.user.note("holder", seen.sent, seen, "undisturbed" if self.runs(seen) else self.verdict(seen))
        self.stop(self.intent, self.holder.session_id, 0)


class Contending(Replaying):
    """One session runs. Most arrivals replay its start; some want its channel in another profile and are busy."""

    def arrive(self, number: int, due: float) -> None:
        if number % _RIVALS:
            return super().arrive(number, due)
        rival = Intent(self.intent.target, self.profiles[1])
        start = self.start(rival, number, due, "rival")
        if said(start) == "accepted":
            self.tell_verdict(start, self.decided(rival, start, number))
        return None


class Refusing(Cycling):
    """Nearly all arrivals have no right to start anything, or ask for nothing that can be started; few are valid."""

    def arrive(self, number: int, due: float) -> None:
        if number % _VALID == 0:
            return super().arrive(number, due)
        # A channel of its own: were it taken, there would be a session of it.
        body = self.user.adapter.start(self.channel(1_000_000 + number), self.profiles[0])
        asked: tuple[tuple[str, Any, str | None], ...] = (
            ("no token", body, ""),
            ("unknown token", body, _UNKNOWN),
            ("read token", body, self.user.reader),
            ("no object", [], None),
            ("no channel", {}, None),
        )
        name, given, token = asked[number % len(asked)]
        answer = self.user.post(given, name, number, token)
        word = "accepted" if answer.session_id else said(answer)
        self.user.note(name, due, answer, word)
        return None


class Seeking(Starting):
    """Arrivals seek in a few recordings; each recording, profile and second has one session."""

    def __init__(self, user: IntentsUser) -> None:
        super().__init__(user)
        self.draw = random.Random(self.plan.seed + user.first)
        self.sessions: dict[str, tuple[Intent, Answer]] = {}
        self.intents: set[Intent] = set()

    def arrange(self) -> None:
        try:
            self.user.adapter.vod("any", self.profiles[0], 0)
        except NotApplicable as why:
            raise Refused(f"could not arrange it: {why}") from why

    def recording(self, number: int) -> str:
        known = self.plan.dialect.get("recording_ids")
        return str(known[number % len(known)]) if known else f"rec-{self.plan.run}-{number}"

    def arrive(self, number: int, due: float) -> None:
        recording = self.recording(self.draw.randrange(int(self.number("recordings"))))
        profile = self.profiles[self.draw.randrange(2)]
        offset = self.draw.randrange(int(self.number("span_ms")))
        # The key has whole seconds: what is sought within one of them is one intent.
        intent = Intent(recording, f"{profile} from second {offset // 1000}")
        answer = self.asked(self.user.adapter.vod(recording, profile, offset), intent, number, due, "seek")
        if said(answer) == "accepted":
            self.intents.add(intent)
            self.sessions.setdefault(answer.session_id, (intent, answer))

    def finish(self) -> None:
        last = list(self.sessions.values())
        self.user.together([partial(self._end, *each) for each in last])
        same = len(self.intents) == len(self.sessions)
        told = (
            "as many sessions as intents" if same else f"{len(self.sessions)} sessions of {len(self.intents)} intents"
        )
        if last:
            self.user.note("audit", last[-1][1].sent, last[-1][1], told)

    def _end(self, intent: Intent, start: Answer) -> None:
        seen = self.decided(intent, start, 0)
        self.user.note("verdict", seen.sent, seen, self.verdict(seen))
        if not seen.terminal:
            self.stop(intent, start.session_id, 0)
