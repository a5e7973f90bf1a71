"""The admission wire, pure: builds requests, reads replies. No sockets here, so load users share it.

Names are those of the contract; `dialects` translates what other targets say. Values compare as the protocol compares
them (`values`); Retry-After may be seconds or a date.
"""

import email.utils
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.check.transcript import shortened
from holdfast.conformance.admission.values import same_id, whole
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.wire import SHOWN, Request, status_words

# Codes that a refusal may carry. CAPACITY_FULL and TIMEOUT are upstream's, and a conforming server has no use for them
# in a refusal; INVALID_REQUEST says that nothing could be read of it.
REASONS = frozenset(
    {
        "NOT_AUTHENTICATED",
        "RATE_LIMITED",
        "NO_ACTIVE_CHARACTER",
        "CHARACTER_NOT_FOUND",
        "CHARACTER_NOT_OWNED",
        "CHARACTER_SUSPENDED",
        "VERSION_MISMATCH",
        "INVALID_INSTANCE",
        "MAINTENANCE",
        "ALREADY_IN_SESSION",
        "INVALID_RECONNECTION_TOKEN",
        "INVALID_REPLACE_TOKEN",
        "DRAIN_MODE",
        "QUEUE_FULL",
        "CAPACITY_FULL",
        "TIMEOUT",
        "INVALID_REQUEST",
        "INTERNAL_ERROR",
    }
)
# What a client sends over its WebSocket now and then, to show that it is there.
HEARTBEAT = {"type": "heartbeat"}
SECRET_FIELDS = ("reconnectionToken", "replacementToken")
# Headers that a row judges, and that a transcript therefore shows.
JUDGED_HEADERS = ("Retry-After", "X-RateLimit-Remaining")


@dataclass(frozen=True, repr=False)
class Answer(shared.Answer):
    """What came back, in the contract's words; `outcome` is None if it was not a structured answer."""

    @property
    def outcome(self) -> str | None:
        return _word(self.fields.get("outcome"))

    @property
    def reason(self) -> str | None:
        return _word(self.fields.get("reason"))

    @property
    def session_id(self) -> str:
        return str(self.fields.get("sessionId") or "")

    @property
    def token(self) -> str:
        return str(self.fields.get("reconnectionToken") or "")

    @property
    def offer(self) -> str:
        return str(self.fields.get("replacementToken") or "")

    @property
    def state(self) -> str:
        """What a poll says of a character; a target that has no such field shows waiting ones only."""
        return str(self.fields.get("state", "queued"))

    @property
    def position(self) -> int | None:
        return _count(self.fields.get("position"))

    @property
    def depth(self) -> int | None:
        return _count(self.fields.get("depth"))

    @property
    def remaining(self) -> int | None:
        """Failures left in the window: the header first, which upstream sends, then the body field."""
        header = self.headers.get("X-RateLimit-Remaining")
        if header is not None and header.lstrip("-").isdigit():
            return int(header)
        return _count(self.fields.get("remainingAttempts"))

    @property
    def retry_after(self) -> int | None:
        return _count(self.fields.get("retryAfterSeconds"))

    @property
    def retry_header(self) -> int | None:
        """The Retry-After header in seconds from the answer on, also if it names a date; None without one."""
        said = self.headers.get("Retry-After", "")
        if said.isdigit():
            return int(said)
        try:
            return round(email.utils.parsedate_to_datetime(said).timestamp() - self.wall)
        except ValueError:
            return None

    def given(self, *names: str) -> list[str]:
        """Returns which of these fields have a value; null is none."""
        return [name for name in names if self.fields.get(name) is not None]

    @property
    def late(self) -> bool:
        """Whether slowness may explain it: no answer, or one which says that the target itself ran out of time."""
        return not self.answered or self.outcome == "timeout" or self.status == 503

    def describe(self) -> str:
        if not self.answered:
            return f"no answer ({self.text})"
        words = [str(self.status), self.outcome, self.reason]
        named = {
            "position": self.position,
            "depth": self.depth,
            "remaining": _count(self.fields.get("remainingAttempts")),
            "retry after": self.retry_after,
        }
        words += [f"{name} {value}" for name, value in named.items() if value is not None]
        words += [
            f"{name}={self.fields[name]}" for name in ("sessionId", *SECRET_FIELDS, "state") if name in self.fields
        ]
        words += [f"[{name}: {self.headers[name]}]" for name in JUDGED_HEADERS if name in self.headers]
        if self.outcome is None and not self.fields.get("state") and self.position is None:
            words.append(shortened(self.text, SHOWN))
        return " ".join(word for word in words if word)


def _word(value: Any) -> str | None:
    """Returns a field that holds a word; anything else as JSON, which is none of the words of the contract."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _count(value: Any) -> int | None:
    """Returns a field that holds a whole number; what else is there is returned too, and compares to none."""
    counted: int | None = whole(value)
    return counted


@dataclass(frozen=True)
class Like:
    """A legal answer: this outcome, and these fields where they are given."""

    outcome: str
    reason: str | None = None
    status: int | tuple[int, ...] | None = None
    position: int | None = None
    depth: int | None = None
    session_id: str | None = None
    retry_hint: bool = False

    def matches(self, seen: Any) -> bool:
        if not isinstance(seen, Answer) or seen.outcome != self.outcome:
            return False
        wanted_status = (self.status,) if isinstance(self.status, int) else self.status
        return all(
            (
                self.reason is None or seen.reason == self.reason,
                wanted_status is None or seen.status in wanted_status,
                self.position is None or seen.position == self.position,
                self.depth is None or seen.depth == self.depth,
                self.session_id is None or same_id(seen.session_id, self.session_id),
                not self.retry_hint or _at_least_one(seen.retry_after),
                self.outcome != "success" or bool(seen.session_id),
            )
        )

    def describe(self) -> str:
        codes = (self.status,) if isinstance(self.status, int) else self.status or ()
        words = [self.outcome, self.reason, status_words(codes) if codes else None]
        named = {"position": self.position, "depth": self.depth, "session": self.session_id}
        words += [f"{name} {value}" for name, value in named.items() if value is not None]
        words.append("with retryAfterSeconds >= 1" if self.retry_hint else None)
        return " ".join(word for word in words if word)


def _at_least_one(seconds: object) -> bool:
    return isinstance(seconds, int | float) and seconds >= 1


@dataclass(frozen=True)
class Coded:
    """A legal refusal of an attempt, whatever the cause: outcome failed with a code of the table, no server error."""

    def matches(self, seen: Any) -> bool:
        return (
            isinstance(seen, Answer)
            and seen.outcome == "failed"
            and seen.reason in REASONS
            and (seen.status == 200 or 400 <= seen.status < 500)
        )

    def describe(self) -> str:
        return "failed with a code of the table, status 200 or 4xx"


@dataclass(frozen=True)
class TurnedAway:
    """A legal refusal of a call that has no outcome field: an error status, or an answer that nothing was done."""

    def matches(self, seen: Any) -> bool:
        if not isinstance(seen, Answer) or seen.status >= 500:
            return False
        undone = any(seen.fields.get(name) is False for name in ("removed", "cancelled", "slotFreed"))
        return seen.status >= 400 or seen.outcome == "failed" or undone

    def describe(self) -> str:
        return "a refusal: 4xx, or nothing done"


@dataclass(frozen=True)
class Done:
    """A legal answer to a call that ends something: no outcome is agreed for it, so any success of HTTP is one."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and 200 <= seen.status < 300 and seen.outcome != "failed"

    def describe(self) -> str:
        return "2xx"


@dataclass(frozen=True)
class Place:
    """A legal answer to a poll of a waiting character."""

    position: int
    depth: int | None = None

    def matches(self, seen: Any) -> bool:
        return (
            isinstance(seen, Answer)
            and (seen.status, seen.state, seen.position) == (200, "queued", self.position)
            and (self.depth is None or seen.depth == self.depth)
        )

    def describe(self) -> str:
        return f"200 waiting at position {self.position}" + (f", depth {self.depth}" if self.depth is not None else "")


@dataclass(frozen=True)
class ClientError:
    """A legal answer to what is no proper request: any status that blames the client, with whatever body."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and 400 <= seen.status < 500

    def describe(self) -> str:
        return "a client error (4xx)"


@dataclass(frozen=True)
class NoServerError:
    """A legal answer where neither document nor contract says which: any but a failure of the server itself."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.answered and seen.status < 500

    def describe(self) -> str:
        return "any answer but a server error"


def success(session_id: str | None = None) -> Like:
    return Like("success", session_id=session_id)


def queued(position: int | None = None, depth: int | None = None) -> Like:
    return Like("queued", position=position, depth=depth)


def refused(reason: str | None = None, status: int | tuple[int, ...] | None = None) -> Like:
    return Like("failed", reason, status)


def coded() -> Coded:
    return Coded()


def turned_away() -> TurnedAway:
    return TurnedAway()


def done() -> Done:
    return Done()


def place(position: int, depth: int | None = None) -> Place:
    return Place(position, depth)


def client_error() -> ClientError:
    return ClientError()


def no_server_error() -> NoServerError:
    return NoServerError()


def locked() -> Like:
    return Like("failed", "RATE_LIMITED", 429)


def timed_out() -> Like:
    return Like("timeout", "TIMEOUT", (200, 408))


def unavailable() -> Like:
    """Returns the legal answer to an outage: it says when to try again."""
    return Like("failed", "INTERNAL_ERROR", 503, retry_hint=True)


def queue_status(instance: str, character: str) -> Request:
    return Request("GET", f"/instances/{instance}/queue/status", query={"characterId": character})


def unqueue(instance: str, character: str) -> Request:
    return Request("DELETE", f"/instances/{instance}/queue", query={"characterId": character})


def cancel(instance: str, token: str) -> Request:
    return Request("DELETE", f"/instances/{instance}/connect", query={"replaceToken": token})


def leave(instance: str, session: str) -> Request:
    return Request("POST", f"/instances/{instance}/disconnect", body={"sessionId": session, "reason": "user"})


def attach(instance: str, query: Mapping[str, str]) -> Request:
    """Returns the request of a session's WebSocket; the query says whose it is."""
    return Request("GET", f"/instances/{instance}/ws", query=query)


def drain(instance: str, *, enabled: bool) -> Request:
    return Request("POST", f"/admin/drain-mode/instance/{instance}", body={"enabled": enabled})


def put_instance(instance: str, **fields: Any) -> Request:
    return Request("PUT", f"/admin/instances/{instance}", body=fields)


def put_character(character: str, **fields: Any) -> Request:
    return Request("PUT", f"/admin/characters/{character}", body=fields)
