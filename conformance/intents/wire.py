"""The wire of intents, pure: builds requests, reads replies. No sockets here, so load users share it.

Values compare as the protocol compares them: states and reasons in any letter case, the session id under either of its
two names, a verdict as state or as reason. `dialects` builds intents for targets that spell them otherwise.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from multidict import CIMultiDict

from holdfast.check.transcript import shortened
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.wire import SHOWN, Request, status_words

INTENTS = "/api/v3/intents"
SESSIONS = "/api/v3/sessions"
START, STOP = "stream.start", "stream.stop"
# What the bus calls the two.
START_EVENT, STOP_EVENT = "session.start", "session.stop"
PROBLEM = "application/problem+json"
FORWARDED = "X-Forwarded-For"

NEW = frozenset({"NEW", "IDLE"})
STARTING = frozenset({"STARTING", "PRIMING"})
TERMINAL = frozenset({"STOPPED", "FAILED", "CANCELLED", "ENDED", "REJECTED_BUSY", "REJECTED_NO_TUNER"})
BUSY = frozenset({"R_LEASE_BUSY", "REJECTED_BUSY"})
NO_TUNER = frozenset({"REJECTED_NO_TUNER"})

# Label of every key, and what joins its parts.
_LABEL, _JOIN = "v3_intent", "|"


def idem_key(secret: str | bytes, target: str, profile: str, bucket: int) -> str:
    """Returns the key of a start: key(s,t,p,b) of the catalogue."""
    text = _JOIN.join((_LABEL, START, target, profile, str(bucket)))
    key = secret if isinstance(secret, bytes) else secret.encode()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, repr=False)
class Answer(shared.Answer):
    """What came back, to an intent or to a poll."""

    @property
    def session_id(self) -> str:
        """The id of a session, under either name; "" if there is none, or no text."""
        found = self.fields.get("sessionId", self.fields.get("session_id"))
        return found if isinstance(found, str) else ""

    @property
    def state(self) -> str:
        """The state that a poll shows, in capitals; "" if the answer shows none."""
        return _capitals(self.fields.get("state")) if self.status in (200, 410) else ""

    @property
    def reason(self) -> str:
        return _capitals(self.fields.get("reason")) if self.status in (200, 410) else ""

    @property
    def code(self) -> str:
        """The code of a problem; "" if there is none."""
        return str(self.fields.get("code") or "")

    @property
    def request_id(self) -> str:
        return str(self.fields.get("requestId") or "")

    @property
    def media_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def new(self) -> bool:
        return self.state in NEW

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def busy(self) -> bool:
        """Whether the session was rejected because another one holds its channel."""
        return self.terminal and bool({self.state, self.reason} & BUSY)

    @property
    def no_tuner(self) -> bool:
        """Whether it was rejected for lack of a tuner."""
        return self.terminal and bool({self.state, self.reason} & NO_TUNER)

    @property
    def rejected(self) -> bool:
        return self.busy or self.no_tuner

    @property
    def late(self) -> bool:
        """Whether slowness may explain it: no answer, or a server that could not do it in time."""
        return not self.answered or self.status in (503, 504)

    def describe(self) -> str:
        if not self.answered:
            return f"no answer ({self.text})"
        shown = {
            "sessionId": self.session_id,
            "state": self.state,
            "reason": self.reason,
            "code": self.code,
            "Retry-After": self.headers.get("Retry-After", ""),
        }
        words = [f"{name}={value}" for name, value in shown.items() if value]
        return " ".join([str(self.status), *(words or [shortened(self.text, SHOWN)])]).rstrip()


def _capitals(value: Any) -> str:
    return value.upper() if isinstance(value, str) else ""


@dataclass(frozen=True)
class Accepted:
    """A legal answer to an intent: 202 with the id of a session, of this one if it is given."""

    session_id: str | None = None

    def matches(self, seen: Any) -> bool:
        if not isinstance(seen, Answer) or seen.status != 202 or not seen.session_id:
            return False
        return self.session_id is None or seen.session_id == self.session_id

    def describe(self) -> str:
        return f"202 with session {self.session_id}" if self.session_id else "202 with a session id"


@dataclass(frozen=True)
class Refused:
    """A legal refusal: one of these statuses, and no session in the answer. Codes are matters of rows of their own."""

    codes: tuple[int, ...]

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.status in self.codes and not seen.session_id

    def describe(self) -> str:
        return f"{status_words(self.codes)} without a session id"


@dataclass(frozen=True)
class Shown:
    """A legal answer to a poll: one of these states, and one of these reasons if any are given."""

    states: frozenset[str]
    reasons: frozenset[str] = frozenset()

    def matches(self, seen: Any) -> bool:
        return (
            isinstance(seen, Answer)
            and seen.state in self.states
            and (not self.reasons or bool({seen.state, seen.reason} & self.reasons))
        )

    def describe(self) -> str:
        why = f" with {' or '.join(sorted(self.reasons))}" if self.reasons else ""
        return f"a session in state {' or '.join(sorted(self.states))}{why}"


@dataclass(frozen=True)
class LetThrough:
    """A legal answer to a request that passes the LAN guard: any but 403, and no error of the server."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.answered and seen.status != 403 and seen.status < 500

    def describe(self) -> str:
        return "an answer other than 403 or 5xx"


def accepted(session_id: str | None = None) -> Accepted:
    return Accepted(session_id)


def refused(*codes: int) -> Refused:
    return Refused(codes)


def shown(*states: str) -> Shown:
    return Shown(frozenset(states))


def is_new() -> Shown:
    return Shown(NEW)


def ended(*reasons: str) -> Shown:
    return Shown(TERMINAL, frozenset(reasons))


def ended_busy() -> Shown:
    return Shown(TERMINAL, BUSY)


def ended_without_tuner() -> Shown:
    return Shown(TERMINAL, NO_TUNER)


def let_through() -> LetThrough:
    return LetThrough()


def intent(body: Any) -> Request:
    """Returns the request with this body, whatever it is."""
    return Request("POST", INTENTS, body)


def poll(session_id: str) -> Request:
    return Request("GET", f"{SESSIONS}/{session_id}")


def forwarded(*lines: str) -> Mapping[str, str]:
    """Returns the headers of a request that a proxy passes on, one X-Forwarded-For for each of these texts."""
    return CIMultiDict([(FORWARDED, line) for line in lines])
