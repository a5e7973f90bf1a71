"""The admission wire, pure: builds requests, reads replies. No sockets here, so load users share it.

The contract dialect is canonical. The `tilemud-code` dialect spells some fields otherwise; a codec translates, so that
checks speak one language.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.wire import Request

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
        "INTERNAL_ERROR",
    }
)
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
SECRET_FIELDS = ("reconnectionToken", "replacementToken")


@dataclass(frozen=True, repr=False)
class Answer(shared.Answer):
    """What came back, in the contract's words; `outcome` is None if it was not a structured answer."""

    @property
    def outcome(self) -> str | None:
        return self.fields.get("outcome")

    @property
    def reason(self) -> str | None:
        return self.fields.get("reason")

    @property
    def session_id(self) -> str:
        return str(self.fields.get("sessionId", ""))

    @property
    def token(self) -> str:
        return str(self.fields.get("reconnectionToken", ""))

    @property
    def offer(self) -> str:
        return str(self.fields.get("replacementToken", ""))

    @property
    def position(self) -> int | None:
        return self.fields.get("position")

    @property
    def depth(self) -> int | None:
        return self.fields.get("depth")

    @property
    def remaining(self) -> int | None:
        """Failures left in the window: the header first, which upstream sends, then the body field."""
        header = self.headers.get("X-RateLimit-Remaining")
        if header is not None and header.lstrip("-").isdigit():
            return int(header)
        return self.fields.get("remainingAttempts")

    @property
    def retry_after(self) -> int | None:
        return self.fields.get("retryAfterSeconds")

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
            "remaining": self.remaining,
            "retry after": self.retry_after,
        }
        words += [f"{name} {value}" for name, value in named.items() if value is not None]
        words += [
            f"{name}={self.fields[name]}" for name in ("sessionId", *SECRET_FIELDS, "state") if name in self.fields
        ]
        if self.outcome is None and not self.fields.get("state") and self.position is None:
            words.append(self.text[:120])
        return " ".join(word for word in words if word)


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
                self.session_id is None or seen.session_id == self.session_id,
                not self.retry_hint or (seen.retry_after or 0) >= 1,
                self.outcome != "success" or bool(seen.session_id),
            )
        )

    def describe(self) -> str:
        words = [self.outcome, self.reason, f"status {self.status}" if self.status else None]
        named = {"position": self.position, "depth": self.depth, "session": self.session_id}
        words += [f"{name} {value}" for name, value in named.items() if value is not None]
        words.append("with retryAfterSeconds >= 1" if self.retry_hint else None)
        return " ".join(word for word in words if word)


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


def locked() -> Like:
    return Like("failed", "RATE_LIMITED", 429)


def timed_out() -> Like:
    return Like("timeout", "TIMEOUT", (200, 408))


def unavailable() -> Like:
    """Returns the legal answer to an outage: it says when to try again."""
    return Like("failed", "INTERNAL_ERROR", 503, retry_hint=True)


class Contract:
    """The contract dialect: OpenAPI names, structured outcomes with HTTP 200."""

    name = "contract"

    def connect(
        self,
        instance: str,
        *,
        character: Any,
        build: str | None,
        token: Any = None,
        replace: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        body = {"characterId": character, "clientBuild": build, "reconnectionToken": token, **(extra or {})}
        said = {name: value for name, value in body.items() if value is not None}
        query = {"replaceToken": replace} if replace else {}
        return Request("POST", f"/instances/{instance}/connect", said, query=query)

    def read(self, answer: Answer) -> Answer:
        return answer


class TilemudCode(Contract):
    """The upstream code's own spelling."""

    name = "tilemud-code"
    _OUTCOMES: ClassVar[dict[str, tuple[str, str | None]]] = {
        "admitted": ("success", None),
        "replaced": ("success", None),
        "already_in_session": ("failed", "ALREADY_IN_SESSION"),
        "drain_mode": ("failed", "DRAIN_MODE"),
        "rate_limited": ("failed", "RATE_LIMITED"),
        "timeout": ("timeout", "TIMEOUT"),
        "server_error": ("failed", "INTERNAL_ERROR"),
    }

    def connect(
        self,
        instance: str,
        *,
        character: Any,
        build: str | None,
        token: Any = None,
        replace: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        body = {"characterId": character, "clientVersion": build, "reconnectionToken": token, "replaceToken": replace}
        body |= extra or {}
        said = {name: value for name, value in body.items() if value is not None}
        return Request("POST", f"/instances/{instance}/connect", said)

    def read(self, answer: Answer) -> Answer:
        if not isinstance(answer.body, dict) or "outcome" not in answer.body:
            return answer
        body = dict(answer.body)
        outcome, reason = self._OUTCOMES.get(body["outcome"], (body["outcome"], None))
        body["outcome"] = outcome
        if reason:
            body["reason"] = reason
        for contract_name, own_name in (
            ("sessionId", "sessionToken"),
            ("position", "queuePosition"),
            ("attemptId", "correlationId"),
        ):
            if own_name in body:
                body.setdefault(contract_name, body[own_name])
        return dataclasses.replace(answer, body=body)


DIALECTS: dict[str, Contract] = {codec.name: codec for codec in (Contract(), TilemudCode())}


def queue_status(instance: str, character: str) -> Request:
    return Request("GET", f"/instances/{instance}/queue/status", query={"characterId": character})


def unqueue(instance: str, character: str) -> Request:
    return Request("DELETE", f"/instances/{instance}/queue", query={"characterId": character})


def cancel(instance: str, token: str) -> Request:
    return Request("DELETE", f"/instances/{instance}/connect", query={"replaceToken": token})


def leave(instance: str, session: str) -> Request:
    return Request("POST", f"/instances/{instance}/disconnect", body={"sessionId": session, "reason": "user"})


def drain(instance: str, *, enabled: bool) -> Request:
    return Request("POST", f"/admin/drain-mode/instance/{instance}", body={"enabled": enabled})


def put_instance(instance: str, **fields: Any) -> Request:
    return Request("PUT", f"/admin/instances/{instance}", body=fields)


def put_character(character: str, **fields: Any) -> Request:
    return Request("PUT", f"/admin/characters/{character}", body=fields)
