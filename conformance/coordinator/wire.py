"""The wire of the cluster, pure: names of the channels, messages, ids of entries. No sockets here.

Values compare as the protocol compares them: names of members in any letter case, `historyId` and `executionId` as one
value, an enumeration by name or by number, the public project's reasons as the document's. What is read from a channel
is a `Message`, also where it is no JSON object: then it has no members, and `said` is the text that came.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

DISPATCH, CANCEL, ASSIGNED, STATUS, LOGS = "dispatch", "cancel", "assigned", "status", "logs"
HANDOFF, ACK = "handoff", "handoff_ack"
WORKER_BEAT, BEAT = "worker_heartbeat", "coordinator_heartbeat"
LOCK = "lock"
# Everybody hears a topic; everything else is a queue.
TOPICS = frozenset({ACK, WORKER_BEAT, BEAT})
# Queues on which all coordinators are one group.
COMPETING = (ASSIGNED, HANDOFF)

SEED: Mapping[str, str] = {
    DISPATCH: "orchestrix.job.dispatch.{queue}",
    CANCEL: "orchestrix.job.cancel",
    ASSIGNED: "orchestrix.job.assigned",
    STATUS: "orchestrix.job.{jobId}.status",
    LOGS: "orchestrix.job.{jobId}.logs",
    HANDOFF: "orchestrix.job.handoff",
    ACK: "orchestrix.job.handoff.ack.{nodeId}",
    WORKER_BEAT: "orchestrix.worker.heartbeat",
    BEAT: "orchestrix.coordinator.heartbeat",
    LOCK: "orchestrix:coordinator:leader",
}
UPSTREAM: Mapping[str, str] = {
    DISPATCH: "orchestrix:job:dispatch:{queue}",
    CANCEL: "orchestrix:job:cancel",
    ASSIGNED: "orchestrix:job:dispatched",
    STATUS: "orchestrix:job:{executionId}:status",
    LOGS: "orchestrix:job:{executionId}:log",
    HANDOFF: "orchestrix:job:handoff",
    ACK: "orchestrix:job:handoff:ack:{nodeId}",
    WORKER_BEAT: "orchestrix:worker:metrics",
    BEAT: "orchestrix:coordinator:metrics",
    LOCK: "orchestrix:lock:orchestrix:coordinator:leader",
}
PROFILES: Mapping[str, Mapping[str, str]] = {"seed": SEED, "upstream": UPSTREAM}

# Values of an enumeration in the order of their numbers.
JOB_STATUSES = (
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
PENDING, DISPATCHED, RUNNING, COMPLETED, FAILED, TIMED_OUT = (JOB_STATUSES[i] for i in (1, 3, 4, 5, 6, 7))
TERMINAL = frozenset(JOB_STATUSES[5:])
LEADER, FOLLOWER = ROLES
ACTIVE, DRAINING, OFFLINE = NODE_STATUSES
SHUTDOWN, NODE_CRASH, REBALANCE = "Shutdown", "NodeCrash", "Rebalance"
ORPHAN_PENDING = "ORPHAN_PENDING"
# What the public project calls the reasons, in the order of their numbers.
_UPSTREAM_REASONS: Mapping[str, str] = {"drain": SHUTDOWN, "crash": NODE_CRASH}
_ENUMS: Mapping[str, tuple[str, ...]] = {"level": LEVELS, "role": ROLES}
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "historyid": ("historyid", "executionid"),
    "executionid": ("executionid", "historyid"),
}
_DIGITS_BEYOND_MICROSECONDS = re.compile(r"(\.\d{6})\d+")
# Numbers above are milliseconds since 1970, below seconds.
_MILLISECONDS_ABOVE = 1e11

Payload = dict[str, Any]


class Names:
    """Names of channels and of the lock, in the spelling of a target: a profile, or a table of what differs."""

    def __init__(self, spelling: str | Mapping[str, str] = "seed") -> None:
        self._names = PROFILES[spelling] if isinstance(spelling, str) else {**SEED, **spelling}

    def channel(self, kind: str, **ids: str) -> str:
        """Returns the name of a channel; `ids` are queue, jobId and executionId, or nodeId."""
        return self._names[kind].format(**ids)

    @property
    def lock(self) -> str:
        return self._names[LOCK]

    def pattern(self, kind: str) -> str:
        """Returns a glob that fits all channels of this kind."""
        return re.sub(r"\{\w+\}", "*", self._names[kind])

    def ids_in(self, kind: str, name: str) -> dict[str, str] | None:
        """Returns what stands for the placeholders in the name of such a channel; None if it is another kind's."""
        pieces = re.split(r"\{(\w+)\}", self._names[kind])
        text = "".join(re.escape(piece) if at % 2 == 0 else f"(?P<{piece}>.+)" for at, piece in enumerate(pieces))
        found = re.fullmatch(text, name)
        return found.groupdict() if found else None


class Message:
    """What an entry of a channel says."""

    def __init__(self, members: Mapping[str, Any] | None, said: str) -> None:
        # As they were spelled; None where the entry holds no JSON object.
        self.members = members
        self.said = said
        self._by_name = {name.lower(): value for name, value in (members or {}).items()}

    def get(self, name: str) -> Any:
        """Returns a member by its name in any letter case; of an alias the one that has a value."""
        names = _ALIASES.get(name.lower(), (name.lower(),))
        return next((value for each in names if (value := self._by_name.get(each)) is not None), None)

    def text(self, name: str) -> str:
        """Returns a member that is a text, "" for every other."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def whole(self, name: str) -> int | None:
        """Returns a member that is a whole number, else None."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def time(self, name: str) -> float | None:
        """Returns a moment, as seconds since 1970; None where the member is none."""
        return seconds_of(self.get(name))

    @property
    def job_id(self) -> str:
        return self.text("jobId")

    @property
    def history_id(self) -> str:
        return self.text("historyId")

    @property
    def node_id(self) -> str:
        return self.text("nodeId")

    @property
    def new_owner(self) -> str:
        return self.text("newOwner")

    @property
    def job_count(self) -> int | None:
        return self.whole("jobCount")

    @property
    def reason(self) -> str:
        """The reason of a handoff in the document's words; as it was said, where it is none of them."""
        return reason_of(self.get("reason"))

    @property
    def job_status(self) -> str:
        return enum_of(self.get("status"), JOB_STATUSES)

    @property
    def node_status(self) -> str:
        return enum_of(self.get("status"), NODE_STATUSES)

    @property
    def role(self) -> str:
        return enum_of(self.get("role"), ROLES)

    def describe(self) -> str:
        return self.said if self.members is None else json.dumps(dict(self.members), ensure_ascii=False)


@dataclass(frozen=True)
class Says:
    """A legal message: has these members, compared as texts unless they are enumerations or the reason."""

    members: Mapping[str, Any]

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Message) and all(_same(seen, name, value) for name, value in self.members.items())

    def describe(self) -> str:
        return "a message with " + ", ".join(f"{name} {value}" for name, value in self.members.items())


def says(**members: Any) -> Says:
    return Says(members)


def _same(seen: Message, name: str, value: Any) -> bool:
    if name == "reason":
        return seen.reason == reason_of(value)
    if name in _ENUMS:
        return bool(enum_of(seen.get(name), _ENUMS[name]) == value)
    return bool(seen.get(name) == value)


def same_handoff(one: Message, other: Message) -> bool:
    """Whether two handoffs are the same: job, reason and execution."""
    return (one.job_id, one.reason, one.history_id) == (other.job_id, other.reason, other.history_id)


def enum_of(value: Any, values: tuple[str, ...]) -> str:
    """Returns the value of an enumeration by its name in any letter case, or by its number; "" if it is none."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, int):
        return values[value] if 0 <= value < len(values) else ""
    return next((each for each in values if isinstance(value, str) and each.lower() == value.lower()), "")


def reason_of(value: Any) -> str:
    """Returns a reason in the document's words; `Drain` and 0 are Shutdown, `Crash` and 1 are NodeCrash."""
    if isinstance(value, int) and not isinstance(value, bool):
        reasons = tuple(_UPSTREAM_REASONS.values())
        return reasons[value] if 0 <= value < len(reasons) else str(value)
    text = value if isinstance(value, str) else ""
    known = {each.lower(): each for each in (SHUTDOWN, NODE_CRASH, REBALANCE)}
    return {**known, **_UPSTREAM_REASONS}.get(text.lower(), text)


def seconds_of(value: Any) -> float | None:
    """Returns a time on the wire as seconds since 1970: ISO 8601 with an offset, or a number; None if it is neither."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(_DIGITS_BEYOND_MICROSECONDS.sub(r"\1", value))
        except ValueError:
            return None
        return at.timestamp() if at.tzinfo else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / 1000 if value > _MILLISECONDS_ABOVE else float(value)


def iso(seconds: float) -> str:
    """Returns a moment since 1970 as it stands on the wire."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def decode(data: str | None) -> Message:
    try:
        members = json.loads(data or "")
    except (ValueError, RecursionError):
        members = None
    return Message(members if isinstance(members, dict) else None, data or "")


def encode(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def milliseconds_of(entry_id: str) -> int:
    """Returns the entry time of a stream's entry, by the clock of Redis."""
    return int(entry_id.partition("-")[0])
