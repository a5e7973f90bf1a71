"""What a target lets us see or do, and the profiles that say how much of it a run answers for.

Three sets of capabilities meet in the plan of a run. A part of a row *needs* some (catalogue). A target *has* some:
each follows from one entry of its descriptor, its hook, and `HOOK` names that entry so that a report can say what to
add. A *profile* is a promise of the operator: rows whose needs lie inside the profile are answered for, and if the
target lacks a capability there the row is `not-observable`, never skipped silently. Each profile contains the narrower
ones.

The list is closed, except that a spec may add capabilities that only its own rows need (`[[capability]]` in its
catalogue); such a one names its profile and its hook there. Sets of capabilities are sets of names: a member of
`Capability` equals its name, so the spec's own need no enum.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Capability(StrEnum):
    WIRE = "wire"
    TAP = "tap"
    REDIS = "redis"
    STORE = "store"
    METRICS = "metrics"
    EVENTS = "events"
    CONTROL_TERM = "control.term"
    CONTROL_KILL = "control.kill"
    CONTROL_RESTART = "control.restart"
    CONTROL_PAUSE = "control.pause"
    CHAOS_PARTITION = "chaos.partition"
    CHAOS_LATENCY = "chaos.latency"
    CHAOS_REDIS = "chaos.redis"
    MULTI_NODE = "multi_node"
    CLOCK = "clock"
    BROWSER = "browser"
    FAULT_HOOK = "fault_hook"


_WIRE = frozenset({Capability.WIRE})
_STORE = _WIRE | {
    Capability.TAP,
    Capability.REDIS,
    Capability.STORE,
    Capability.METRICS,
    Capability.EVENTS,
}
_CONTROL = _STORE | {
    Capability.CONTROL_TERM,
    Capability.CONTROL_KILL,
    Capability.CONTROL_RESTART,
    Capability.CONTROL_PAUSE,
    Capability.MULTI_NODE,
    Capability.CLOCK,
    Capability.FAULT_HOOK,
}
_FULL = frozenset(Capability)

# Narrowest first: a profile has everything that those before it have.
PROFILES: dict[str, frozenset[Capability]] = {
    "wire": _WIRE,
    "store": _STORE,
    "control": _CONTROL,
    "full": _FULL,
}

# The one entry of a target descriptor that makes each capability available.
HOOK: dict[Capability, str] = {
    Capability.WIRE: "[[node]] urls or start",
    Capability.TAP: "[[node]] start with {redis}, so that the node talks to Redis through our link",
    Capability.REDIS: "[observe] redis",
    Capability.STORE: "[observe] store, or [query]",
    Capability.METRICS: "[observe] metrics",
    Capability.EVENTS: "[observe] events",
    Capability.CONTROL_TERM: "[[node]] start, or the hook `term`",
    Capability.CONTROL_KILL: "[[node]] start, or the hook `kill`",
    Capability.CONTROL_RESTART: "[[node]] start, or the hook `restart`",
    Capability.CONTROL_PAUSE: "[[node]] start, or the hooks `pause` and `resume`",
    Capability.CHAOS_PARTITION: "[[node]] start with {redis} or {peers}, or [links]",
    Capability.CHAOS_LATENCY: "[[node]] start with {redis} or {peers}, or [links]",
    Capability.CHAOS_REDIS: "[[node]] start with {redis}, or [links] to the Redis",
    Capability.MULTI_NODE: "a second [[node]]",
    Capability.CLOCK: "[settings] clock_offset",
    Capability.BROWSER: "a browser on this machine",
    Capability.FAULT_HOOK: "[settings] fault_hook",
}


@dataclass(frozen=True)
class OwnCapability:
    """A capability that only one spec has: a target has it when its descriptor has this key in this section."""

    name: str
    profile: str
    section: str
    key: str

    @property
    def hook(self) -> str:
        return f"[{self.section}] {self.key}"


def in_profile(profile: str, own: Iterable[OwnCapability]) -> frozenset[str]:
    """Returns the capabilities of this profile, with those of the spec's own that belong to it."""
    order = list(PROFILES)
    added = {each.name for each in own if order.index(each.profile) <= order.index(profile)}
    return PROFILES[profile] | added
