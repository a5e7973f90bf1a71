"""What a target lets us see or do, and the profiles that name how much of it a run answers for."""

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
    BUNDLE_TOOL = "bundle_tool"


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
    Capability.BUNDLE_TOOL,
}
_FULL = frozenset(Capability)

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
    Capability.STORE: "[observe] store",
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
    Capability.BUNDLE_TOOL: "[credentials] bundle_tool",
}
