"""Messages of section 2: one JSON object in the field `data` of a stream entry, or the payload of a publication.

Anybody may write to a channel, so nothing in a message is taken for granted. Members are read without regard to case,
an enumeration by name or by number, and `historyId` and `executionId` are one value.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Payload = Mapping[str, Any]
STATUSES = (
    "Created",
    "Pending",
    "Scheduled",
    "Dispatched",
    "Running",
    "Completed",
    "Failed",
    "TimedOut",
    "Cancelled",
)
LEVELS = ("Trace", "Debug", "Information", "Warning", "Error", "Critical")
ROLES = ("Leader", "Follower")
NODE_STATUSES = ("Active", "Draining", "Offline")
SHUTDOWN, NODE_CRASH, REBALANCE = "Shutdown", "NodeCrash", "Rebalance"
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode


class Message:
    """A message that was received."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._given = members
        self._members = {name.lower(): value for name, value in members.items()}

    def text(self, *names: str) -> str:
        """Returns the first of these members that is a text and not empty, or an empty text."""
        values = (self._members.get(name.lower()) for name in names)
        return next((sendable(value) for value in values if isinstance(value, str) and value), "")

    def number(self, name: str) -> int:
        value = self._members.get(name.lower())
        return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0

    def one_of(self, name: str, values: Sequence[str]) -> str:
        """Returns the value of an enumeration by its name or number; an empty text if it is none."""
        value = self._members.get(name.lower())
        if isinstance(value, int) and 0 <= value < len(values):
            return values[value]
        return next((each for each in values if isinstance(value, str) and each.lower() == value.lower()), "")

    def json(self) -> str:
        """Returns the message as it came."""
        return _COMPACT(self._given)

    @property
    def history_id(self) -> str:
        return self.text("historyId", "executionId")


def decode(data: str | bytes) -> Message | None:
    """Reads a message; None if it is no JSON object."""
    try:
        members = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return Message(members) if isinstance(members, dict) else None


def sendable(text: str) -> str:
    """Returns the text without halves of characters, which JSON can say and UTF-8 can't."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def encode(payload: Payload) -> str:
    return _COMPACT(payload)


@dataclass(frozen=True)
class Entry:
    """One entry of a queue, with the channel and group that it was read from; `message` is None for a bad one."""

    stream: str
    group: str
    id: str
    message: Message | None


def fields_of(words: Sequence[bytes] | None) -> dict[bytes, bytes]:
    words = words or ()
    return dict(zip(words[::2], words[1::2], strict=False))


def execution(history_id: str) -> Payload:
    """Returns the members that name an execution: the document's and the public project's."""
    return {"historyId": history_id, "executionId": history_id}
