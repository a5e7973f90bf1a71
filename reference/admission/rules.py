"""Rules of the spec that need neither network nor Redis (spec 3, 6, 8, 9, 11), and the limits for the scripts."""

import math
import re
from typing import Any, ClassVar, Final

from holdfast.reference.admission.settings import Settings

COMMON: Final = (
    "rate_lock",
    "character_given",
    "character_known",
    "character_owned",
    "not_suspended",
    "build_current",
    "instance_known",
    "in_service",
)

MESSAGES: Final = {
    "NOT_AUTHENTICATED": "Credentials are missing or not valid.",
    "RATE_LIMITED": "Too many failed attempts; try again when the lock has lifted.",
    "NO_ACTIVE_CHARACTER": "The request names no character.",
    "CHARACTER_NOT_FOUND": "The character does not exist.",
    "CHARACTER_NOT_OWNED": "The character belongs to another user.",
    "CHARACTER_SUSPENDED": "The character is suspended.",
    "VERSION_MISMATCH": "The client build is not the current one; update the client.",
    "INVALID_INSTANCE": "The instance does not exist.",
    "MAINTENANCE": "The instance is in maintenance.",
    "ALREADY_IN_SESSION": "The character has a session.",
    "INVALID_RECONNECTION_TOKEN": "The reconnection token is not valid.",
    "INVALID_REPLACE_TOKEN": "The replacement token is not valid.",
    "DRAIN_MODE": "The instance takes no newcomers.",
    "QUEUE_FULL": "The queue is full.",
    "TIMEOUT": "The attempt could not be decided in time; try again.",
    "INTERNAL_ERROR": "The service is not available for the moment; try again.",
    "INVALID_REQUEST": "The request is malformed.",
    "NOT_FOUND": "There is no such thing here.",
}

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


class Rules:
    """Each method is one rule, so that a mutant can break exactly one.

    `precedence` has the checks of each kind of attempt in their order; each name is a Lua function.
    """

    precedence: ClassVar[dict[str, tuple[str, ...]]] = {
        "admit": (
            *COMMON,
            "existing_session",
            "already_waiting",
            "drain",
            "free_slot",
            "queue_cap",
            "enqueue",
        ),
        "reconnect": (*COMMON, "reconnection_token", "old_socket", "resume"),
        "replace": (*COMMON, "replacement_token", "drain", "swap"),
    }

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def counted(self) -> tuple[str, ...]:
        """Returns the refusals that the client can be blamed for; only these count as failures for the limiter."""
        return (
            "NO_ACTIVE_CHARACTER",
            "CHARACTER_NOT_FOUND",
            "CHARACTER_NOT_OWNED",
            "CHARACTER_SUSPENDED",
            "VERSION_MISMATCH",
            "INVALID_INSTANCE",
            "INVALID_RECONNECTION_TOKEN",
            "INVALID_REPLACE_TOKEN",
        )

    def is_id(self, text: str) -> bool:
        return _ID.fullmatch(text) is not None

    def is_token(self, text: str) -> bool:
        return _UUID.fullmatch(text) is not None

    def build_ok(self, body: str | None, header: str | None) -> bool:
        """Tells whether the build is the current one, as an opaque string; sent in body and header, both have to be."""
        sent = [build for build in (body, header) if build is not None]
        return bool(sent) and all(build == self.settings.current_client_build for build in sent)

    def stale_limit(self) -> float:
        return 2 * self.settings.heartbeat_interval

    def journal_life(self) -> float:
        """Returns how long a session lives at most whose client does not know of it; after that nothing is to undo."""
        return self.stale_limit() + 2 * self.settings.janitor_interval + self.settings.attempt_deadline

    def retry_after(self, reason: str, lock_ms: float | None = None) -> int | None:
        """Returns when to try again, in whole seconds, or None where trying again does not help."""
        if lock_ms is not None:
            return max(1, math.ceil(lock_ms / 1000))
        if reason in {"QUEUE_FULL", "DRAIN_MODE", "MAINTENANCE"}:
            return self.poll_after()
        return 1 if reason in {"TIMEOUT", "INTERNAL_ERROR"} else None

    def poll_after(self) -> int:
        return max(1, round(self.settings.poll_interval))

    def is_leave(self, close_code: int | None) -> bool:
        """Tells whether the client left: it closed with 1000. Every other end of a socket is a network loss."""
        return close_code == 1000

    def end_is_final(self, reason: str | None, ms_ago: float) -> bool:
        """Tells whether the end of a session can no longer be undone. A replacement can, until its attempt and an undo
        of it are over.
        """
        return reason != "replace" or ms_ago > (2 * self.settings.attempt_deadline) * 1000

    def suspicious(self, kind: str, seen: int) -> bool:
        thresholds = {
            "rapid_token_failures": self.settings.suspicious_token_failures,
            "mismatched_reconnect": self.settings.suspicious_mismatches,
        }
        return seen >= thresholds[kind]

    def limits(self) -> dict[str, Any]:
        """Returns what the scripts have to know; it is written into their text."""
        s = self.settings
        return {
            "prefix": s.prefix,
            "node": s.node,
            "precedence": self.precedence,
            "counted": dict.fromkeys(self.counted(), True),
            "queueCap": s.queue_cap,
            "defaultCapacity": s.default_capacity,
            "rateFailures": s.rate_failures,
            "rateWindowMs": milliseconds(s.rate_window),
            "rateLockMs": milliseconds(s.rate_lock),
            "replacementMs": milliseconds(s.replacement_ttl),
            "graceMs": milliseconds(s.grace),
            "tokenMs": milliseconds(s.token_ttl),
            "staleMs": milliseconds(self.stale_limit()),
            "beatKeyMs": milliseconds(self.stale_limit() + s.heartbeat_interval),
            "suspiciousMs": milliseconds(s.suspicious_window),
            "journalMs": milliseconds(self.journal_life()),
            "drain": s.drain,
            "maintenance": s.maintenance,
        }


def milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def plain(seconds: float) -> int | float:
    """Returns whole seconds as a whole number, so that JSON has no `.0`."""
    return int(seconds) if seconds == int(seconds) else seconds
