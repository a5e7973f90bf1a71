"""Answers of the scripts. Field names are those of the wire and of the stored records."""

from typing import Any, NotRequired, Required, TypedDict

Record = dict[str, Any]


class Replaced(TypedDict):
    sessionId: str
    socket: NotRequired[str]


class Verdict(TypedDict, total=False):
    """The answer of `decide`. The outcomes `late` and `occupied` are for the node only; clients never see them."""

    outcome: Required[str]
    reason: str
    sessionId: str
    reconnectionToken: str
    reconnected: bool
    position: int
    depth: int
    remaining: int
    resetMs: float
    lockMs: float
    replacementToken: str
    replaced: Replaced
    socket: str
    suspicious: str
    seen: int
    message: str


class Attached(TypedDict, total=False):
    refused: str
    session: Record


class Beat(TypedDict, total=False):
    alive: Required[bool]
    taken: bool
    ended: str
    endedMsAgo: float


class Left(TypedDict, total=False):
    found: Required[bool]
    foreign: bool
    characterId: str
    socket: str


class Status(TypedDict, total=False):
    state: Required[str]
    position: int
    depth: int
    sessionId: str
    reconnectionToken: str


class Promoted(TypedDict, total=False):
    promoted: Required[bool]
    characterId: str
    userId: str
    attemptId: str
    sessionId: str
    waitMs: float
    at: float


class Ended(TypedDict, total=False):
    sessionId: Required[str]
    characterId: Required[str]
    userId: Required[str]
    instanceId: Required[str]
    reason: Required[str]
    socket: str


class Restored(TypedDict, total=False):
    kept: Required[bool]
    taken: bool
    ended: str


class InstanceGauges(TypedDict):
    instanceId: str
    active: int
    depth: int
    peak: int
