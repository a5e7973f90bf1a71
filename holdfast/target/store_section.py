"""The store of a target as data: what `[store]` of a descriptor says, and what a run makes of it.

Two records, from the text to the processes. A `StoreSpec` is the section as written, checked as a whole: which kind of
store every deployment gets, how many members it has, how its Sentinels decide. A `StorePlan` is the same for one run:
names of timings have become seconds in the time of that run. What is started from a plan is up to the room `fixtures`.

A duration is either a literal (`"5s"`), which means what it says at every scale, or the name of a timing of the
catalogue (`"sentinel_down_after"`), which scales with the run as every other timing does. Sentinels count in
milliseconds but act in steps of 100 ms, ask a promoted replica once a second, and take a server that was not scheduled
for a while for a dead one. So a scaled duration stops at a floor, and a literal below the floor is refused.

Plans are equal if, and only if, a store that was started for one of them also serves the other: that is how stores are
started ahead of the deployments that will want them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from holdfast.spec.catalogue import CatalogueError, seconds
from holdfast.spec.timings import Timings

KINDS = ("none", "redis", "replica", "sentinel")
SETS = ("replica", "sentinel")
# A server that was not scheduled for less than this is not dead.
LEAST_DOWN_AFTER = 0.5
# An election, and an answer of the promoted replica, which is asked once a second.
LEAST_FAILOVER_TIMEOUT = 3.0
# Which kinds of store each placeholder needs.
PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "{redis}": ("redis", "replica", "sentinel"),
    "{replica}": ("replica", "sentinel"),
    "{sentinels}": ("sentinel",),
    "{master_name}": ("sentinel",),
}
# Those that one server alone can't fill.
SET_PLACEHOLDERS = tuple(place for place, kinds in PLACEHOLDERS.items() if "redis" not in kinds)
# What to add to a descriptor, or leave out of the command, so that deployments have replicas or Sentinels.
SET_HOOK = '[store] kind = "{kind}" with stores that Holdfast starts: leave out --redis-url, which is one server'


@dataclass(frozen=True)
class StorePlan:
    """The store of a deployment in the time of a run; durations in seconds."""

    kind: str = "none"
    replicas: int = 0
    sentinels: int = 0
    quorum: int = 0
    down_after: float = 0.0
    failover_timeout: float = 0.0
    master_name: str = ""

    @property
    def is_set(self) -> bool:
        """Whether it has several members, which takes a while to start."""
        return self.kind in SETS

    @property
    def hook(self) -> str:
        """Returns what would have to be there for a check that needs this set."""
        return SET_HOOK.format(kind=self.kind)


@dataclass(frozen=True)
class StoreSpec:
    """`[store]` as written. `mutants` names other values for the deployments of a mutant that breaks the store."""

    kind: str = "none"
    replicas: int = 1
    sentinels: int = 3
    quorum: int = 2
    down_after: str = "5s"
    failover_timeout: str = "30s"
    master_name: str = "mymaster"
    mutants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def plan(self, timings: Timings, variant: str = "") -> StorePlan:
        """Returns the store of a deployment in the time of a run; `variant` is the mutant that it is started as."""
        if variant in self.mutants:
            return replace(self, mutants={}, **self.mutants[variant]).plan(timings)
        if self.kind not in SETS:
            return StorePlan(self.kind)
        if self.kind == "replica":
            return StorePlan(self.kind, self.replicas)
        return StorePlan(
            self.kind,
            self.replicas,
            self.sentinels,
            self.quorum,
            _in_run(self.down_after, timings, LEAST_DOWN_AFTER),
            _in_run(self.failover_timeout, timings, LEAST_FAILOVER_TIMEOUT),
            self.master_name,
        )


# What a mutant may have of its own.
_KEYS = {each.name for each in fields(StoreSpec)} - {"kind", "mutants"}


def read(
    entry: Mapping[str, Any], users: Mapping[str, Sequence[str]], timings: Collection[str], *, startable: bool
) -> StoreSpec:
    """Returns the section as a record. Raises ValueError, which names the key and the remedy.

    users: for each placeholder of a store the nodes that use it. timings: the names that a duration may have.
    startable: whether Holdfast starts the nodes; our store is of no use to nodes that it did not start.
    """
    if entry and not startable:
        raise ValueError("[store]: Holdfast gives a store only to nodes that it starts; add `start`, or leave it out")
    spec = StoreSpec(**{"kind": "redis" if users.get("{redis}") else "none", **entry})
    _must_serve(spec, users)
    _must_make_sense(spec, timings)
    for name, other in spec.mutants.items():
        if unknown := other.keys() - _KEYS:
            raise ValueError(f"[store.mutants] {name}: no such key: {', '.join(sorted(unknown))}")
        _must_make_sense(replace(spec, **other), timings)
    return spec


def _must_serve(spec: StoreSpec, users: Mapping[str, Sequence[str]]) -> None:
    """The kind must exist and offer what the nodes use."""
    if spec.kind not in KINDS:
        raise ValueError(f"[store] kind: {spec.kind!r} is none of {', '.join(KINDS)}")
    for placeholder, kinds in PLACEHOLDERS.items():
        if users.get(placeholder) and spec.kind not in kinds:
            wanted = " or ".join(f'"{kind}"' for kind in kinds)
            raise ValueError(
                f'[store] kind: "{spec.kind}" has no {placeholder}, which {", ".join(users[placeholder])} uses; '
                f"write kind = {wanted}"
            )


def _must_make_sense(spec: StoreSpec, timings: Collection[str]) -> None:
    for name in ("replicas", "sentinels", "quorum"):
        if getattr(spec, name) < 1:
            raise ValueError(f"[store] {name}: must be at least 1; a kind without them is chosen by `kind`")
    if spec.quorum > spec.sentinels:
        raise ValueError(f"[store] quorum: {spec.quorum} of {spec.sentinels} sentinels can never agree")
    if not spec.master_name or any(letter.isspace() for letter in spec.master_name):
        raise ValueError(f"[store] master_name: {spec.master_name!r} is no single word")
    for name, least in (("down_after", LEAST_DOWN_AFTER), ("failover_timeout", LEAST_FAILOVER_TIMEOUT)):
        _must_be_a_duration(name, getattr(spec, name), timings, least)


def _must_be_a_duration(name: str, text: str, timings: Collection[str], least: float) -> None:
    if text in timings:
        return
    try:
        literal = seconds(text)
    except CatalogueError:
        raise ValueError(
            f'[store] {name}: {text!r} is neither a duration such as "5s" nor a timing of the catalogue'
        ) from None
    if literal < least:
        raise ValueError(f"[store] {name}: {text} is less than {least:g} s, with which Sentinels take slow for dead")


def _in_run(text: str, timings: Timings, least: float) -> float:
    """Seconds of a duration in this run: a timing of the catalogue scaled, a literal as it is."""
    return max(timings.of(text).seconds if text in timings.all() else seconds(text), least)
