"""The kinds of faults that a schedule can name, as data: where they go, what they take, what the target must offer.

Faults of one slot on one subject exclude each other: a link can't be cut and refused at once. Others may overlap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.chaos.schedules.schedule import Argument, Place, Time
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import TimingKind


class Takes(StrEnum):
    TIME = "time"
    SHARE = "share"
    NUMBER = "number"
    WORD = "word"


@dataclass(frozen=True)
class Parameter:
    """`low` and `high` bound what a drawn schedule takes; without a default, a step has to name it."""

    takes: Takes
    default: Argument | None = None
    low: float = 0.0
    high: float = 0.0
    words: tuple[str, ...] = ()
    kind: TimingKind = TimingKind.LATENCY

    def problem(self, value: Argument) -> str | None:
        """Return what to write instead if the value does not fit, else None."""
        match self.takes:
            case Takes.TIME:
                return None if isinstance(value, Time) else "write a time like 500ms, 2s or '300ms real'"
            case Takes.WORD:
                return None if value in self.words else f"write one of {', '.join(self.words)}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "write a number"
        if self.takes is Takes.SHARE:
            return None if 0 <= value <= 1 else "write a share from 0 to 1"
        return None if value > 0 else "write a number above 0"


@dataclass(frozen=True)
class Kind:
    name: str
    on: frozenset[Place]
    slot: str
    needs: frozenset[Capability]
    doc: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    lasting: bool = True


def _delay(low: float, high: float) -> Parameter:
    return Parameter(Takes.TIME, low=low, high=high)


_STREAMS = frozenset({Place.LINK, Place.UDP})
_TCP, _UDP = frozenset({Place.LINK}), frozenset({Place.UDP})
_NODE, _STORE = frozenset({Place.NODE}), frozenset({Place.STORE})

_PARTITION = frozenset({Capability.CHAOS_PARTITION})
_LATENCY = frozenset({Capability.CHAOS_LATENCY})
_REDIS = frozenset({Capability.CHAOS_REDIS})
_BACK = frozenset({Capability.CONTROL_RESTART})

_DIRECTION = Parameter(Takes.WORD, default="both", words=("up", "down", "both"))
_NO_TIME = Parameter(Takes.TIME, default=Time(0.0, TimingKind.LATENCY))
_JITTERED = {"seconds": _delay(0.05, 0.5), "jitter": _NO_TIME}
_SOME = {"share": Parameter(Takes.SHARE, low=0.02, high=0.3), "direction": _DIRECTION}

_ALL: Iterable[Kind] = (
    Kind("delay", _STREAMS, "delay", _LATENCY, "hold everything for a while", {**_JITTERED, "direction": _DIRECTION}),
    Kind(
        "rate",
        _STREAMS,
        "rate",
        _LATENCY,
        "limit the bytes per second",
        {"kilobytes": Parameter(Takes.NUMBER, low=1, high=100), "direction": _DIRECTION},
    ),
    Kind(
        "stall", _STREAMS, "path", _PARTITION, "hold everything until healed (UDP: lose it)", {"direction": _DIRECTION}
    ),
    Kind("refuse", _TCP, "path", _PARTITION, "refuse connections and reset those that are open"),
    Kind("cut", _TCP, "path", _PARTITION, "reset connections, those that are open and every new one"),
    Kind("reset", _TCP, "path", _PARTITION, "reset the connections that are open, once", lasting=False),
    Kind("loss", _UDP, "loss", _PARTITION, "lose a share of the datagrams", _SOME),
    Kind("duplicate", _UDP, "duplicate", _PARTITION, "deliver a share of the datagrams twice", _SOME),
    Kind("reorder", _UDP, "reorder", _PARTITION, "let a share of the datagrams be overtaken", _SOME),
    Kind("corrupt", _UDP, "corrupt", _PARTITION, "flip bits in a share of the datagrams", _SOME),
    Kind("rebind", _UDP, "path", _PARTITION, "go on from another source port, once", lasting=False),
    Kind("term", _NODE, "process", _BACK | {Capability.CONTROL_TERM}, "SIGTERM; healed by a start"),
    Kind("kill", _NODE, "process", _BACK | {Capability.CONTROL_KILL}, "SIGKILL; healed by a start"),
    Kind("stop", _NODE, "process", frozenset({Capability.CONTROL_PAUSE}), "SIGSTOP; healed by SIGCONT"),
    Kind("restart", _NODE, "process", _BACK, "kill and start again, once", lasting=False),
    Kind(
        "clock",
        _NODE,
        "process",
        _BACK | {Capability.CLOCK},
        "start again with a clock that is off",
        {
            "seconds": Parameter(Takes.TIME, low=1, high=300, kind=TimingKind.STIMULUS),
            "direction": Parameter(Takes.WORD, default="ahead", words=("ahead", "behind")),
        },
    ),
    Kind("down", _STORE, "process", _REDIS, "stop it; healed by a start with its data"),
    Kind("empty", _STORE, "process", _REDIS, "stop it; healed by a start without its data"),
    Kind("frozen", _STORE, "process", _REDIS, "SIGSTOP; healed by SIGCONT"),
    Kind("failover", _STORE, "process", _REDIS, "make another one the primary, once", lasting=False),
    Kind("slow", _STORE, "delay", _REDIS, "delay every answer", _JITTERED),
    Kind("replica-lost", _STORE, "replica", _REDIS, "cut the link to its replica"),
)

KINDS: Mapping[str, Kind] = {fault.name: fault for fault in _ALL}
