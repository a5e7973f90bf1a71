"""What the user asked for: one record, from the command line or from pytest's flags down to the harness.

Each option is written once, here, with its help text. `holdfast.cli.options` makes the flags of a command from the
fields that the command names, `holdfast.plugin` makes pytest's flags from `PYTEST_FLAGS`. Everything below the command
line is handed the record itself.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from holdfast.check.walk.order import Order
from holdfast.check.walk.replay import read
from holdfast.run.scheduler import overlap_for
from holdfast.run.selection import Selection
from holdfast.spec.catalogue import seconds
from holdfast.target.descriptor import Target, TargetError, builtin_path, load

# Seconds that `holdfast walk` walks if nothing is said, and that it spends at most on making a finding short.
WALK_FOR, WALK_SHRINK = 60.0, 90.0


class Level(StrEnum):
    MUST = "must"
    SHOULD = "should"
    MAY = "may"


class Launcher(StrEnum):
    FORK = "fork"
    EXEC = "exec"


class WalkUntil(StrEnum):
    COVERED = "covered"


class KilledBy(StrEnum):
    ALL = "all"
    SUITE = "suite"
    WALKS = "walks"


class FaultEngine(StrEnum):
    RELAY = "relay"
    TOXIPROXY = "toxiproxy"


@dataclass(frozen=True)
class Flag:
    """How an option is explained to the user, and which values of it make sense."""

    help: str
    metavar: str | None = None
    # The smallest number that makes sense; for a duration (`TIME`) it must be longer than nothing.
    least: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    target: Annotated[str | None, Flag("descriptor of the target, or the key of a built-in one", "FILE")] = None
    wait: Annotated[
        str | None, Flag("wait this long for the descriptor, and for its URLs to answer, e.g. 30s", "TIME")
    ] = None
    catalogue: Annotated[str | None, Flag("insist on this version of the catalogue", "VERSION")] = None
    time_scale: Annotated[float | None, Flag("1 = the spec's own time", "X")] = None
    profile: Annotated[str | None, Flag("wire, store, control or full instead of the descriptor's", "NAME")] = None
    only: Annotated[
        tuple[str, ...],
        Flag("AD-RATE-03, AD-RATE, AD-RATE-03#2, AD-*-01 or the name of a check; in any case, with commas", "ID"),
    ] = ()
    level: Annotated[Level | None, Flag("leave weaker requirements out")] = None
    results: Annotated[Path | None, Flag("where events.jsonl and the reports go", "DIR")] = None
    fail_fast: Annotated[bool, Flag("stop at the first failure")] = False
    last_failed: Annotated[bool, Flag("only what failed in the last run")] = False
    repeat: Annotated[int, Flag("run every check N times", "N", 1)] = 1
    jobs: Annotated[int | None, Flag("specs at the same time, each in a runner of its own; one a core", "N", 1)] = None
    stress: Annotated[int, Flag("keep N cores busy meanwhile", "N", 0)] = 0
    overlap: Annotated[int | None, Flag("how many checks wait at the same time", "N", 1)] = None
    budget: Annotated[str | None, Flag("the most telling checks that fit, e.g. 30m", "TIME")] = None
    launcher: Annotated[Launcher, Flag("how Python nodes are started")] = Launcher.FORK
    redis_url: Annotated[str | None, Flag("use this Redis instead of the embedded one", "URL")] = None
    seed: Annotated[int, Flag("of every random draw; the same seed repeats a run", "S")] = 1
    violate: Annotated[str | None, Flag("start the built-in target as this mutant, e.g. AD-RATE-03/1", "ID/n")] = None
    stranger: Annotated[int | None, Flag("let the built-in target speak in dialects drawn from this seed", "SEED")] = (
        None
    )
    scenarios: Annotated[bool, Flag("the chaos scenarios instead of the suite")] = False
    engine: Annotated[FaultEngine, Flag("what scenarios inject faults with")] = FaultEngine.RELAY
    random: Annotated[
        int, Flag("run N schedules of faults drawn with --seed instead of the named scenarios", "N", 0)
    ] = 0
    schedule: Annotated[Path | None, Flag("run this schedule of faults (TOML) instead of a drawn one", "FILE")] = None
    walks: Annotated[bool, Flag("the walks alone, as long as they are asked to")] = False
    steps: Annotated[int | None, Flag("walk this many steps", "N", 1)] = None
    for_: Annotated[str | None, Flag("walk for this long, e.g. 5m", "TIME")] = None
    until: Annotated[WalkUntil | None, Flag("end the walks when every pair was reached")] = None
    replay: Annotated[Path | None, Flag("perform the walk of this file instead of drawing one", "FILE")] = None
    against: Annotated[
        str | None, Flag("walk this target beside it, step by step: `reference` or a descriptor", "TARGET")
    ] = None
    sample: Annotated[int | None, Flag("only N of the mutants, drawn with --seed", "N", 1)] = None
    drawn: Annotated[int, Flag("N mutants drawn with --seed from the reference instead of the listed ones", "N", 0)] = 0
    by: Annotated[KilledBy, Flag("what may kill a drawn mutant: the suite, the walks or both")] = KilledBy.ALL
    cap: Annotated[str, Flag("the most check time that one drawn mutant gets", "TIME")] = "120m"
    all_checks: Annotated[bool, Flag("run every check against every mutant, to see what else kills it")] = False

    @property
    def selection(self) -> Selection:
        return Selection(self.only, self.level)

    @property
    def cap_s(self) -> float:
        return seconds(self.cap)

    @property
    def budget_s(self) -> float | None:
        return seconds(self.budget) if self.budget else None

    @property
    def walk_order(self) -> Order | None:
        """What the walks of this run are to do; None for the short ones of an ordinary run."""
        if not self.walks:
            return None
        time = seconds(self.for_) if self.for_ else WALK_FOR
        return Order(
            seconds=time,
            shrink=WALK_SHRINK,
            steps=self.steps,
            until_covered=self.until is WalkUntil.COVERED,
            goal=1.0 if self.until else 0.0,
            replay=read(self.replay) if self.replay else None,
        )

    def overlap_at(self, scale: float, runners: int = 1) -> int:
        """How many checks wait at the same time, at this time scale if nothing was asked for."""
        return self.overlap or overlap_for(scale, storms=bool(self.random), runners=runners)

    def to_json(self) -> dict[str, Any]:
        """The options that were given, as JSON; `from_json` makes the same record of it in another process."""
        given = {name: value for name, value in vars(self).items() if value != options()[name].default}
        return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "RunOptions":
        known = options()
        return cls(**{name: known[name].read(value) for name, value in given.items()})

    def read_target(self, spec: str | None = None) -> Target:
        """The target that was asked for, or the built-in one of this spec, as this run uses it."""
        target = load(_descriptor(self.target or spec or "")).at_scale(self.time_scale).with_profile(self.profile)
        target = target.with_setting("violate", self.violate) if self.violate else target
        return estranged(target, self.stranger)

    def read_against(self, target: Target) -> Target | None:
        """The second target that walks are to take, by the name that was given, so that both can be told apart."""
        if self.against is None:
            return None
        file = builtin_path(target.spec) if self.against == "reference" else _descriptor(self.against)
        other = load(file).at_scale(self.time_scale).with_profile(self.profile)
        if other.spec != target.spec:
            raise TargetError(f"--against {self.against}: a target of {other.spec}, not of {target.spec}")
        return replace(other, name=self.against)


PYTEST_FLAGS = (
    "target",
    "time_scale",
    "profile",
    "only",
    "level",
    "results",
    "launcher",
    "redis_url",
    "repeat",
    "stress",
    "overlap",
    "budget",
    "violate",
    "stranger",
    "scenarios",
    "walks",
    "random",
    "schedule",
    "engine",
    "seed",
)


def estranged(target: Target, seed: int | None) -> Target:
    """The target whose nodes speak in dialects drawn from this seed, each in its own; as it is without a seed."""
    if seed is None:
        return target
    if "stranger" not in target.settings:
        raise TargetError(f"--stranger: {target.name} has no setting `stranger`; only the built-in targets take it")
    return target.with_setting("stranger", f"{seed}:{{node}}")


def _descriptor(named: str) -> Path:
    """A file of this name comes first; else it may be the key of a built-in target."""
    if not Path(named).exists() and builtin_path(named).is_file():
        return builtin_path(named)
    return Path(named)


@dataclass(frozen=True)
class Option:
    """One field of the record, as whoever makes flags of it needs it."""

    name: str
    kind: type
    many: bool
    default: Any
    flag: Flag

    def read(self, value: Any) -> Any:
        """A value of this option from JSON."""
        return tuple(map(self.kind, value)) if self.many else self.kind(value)

    @property
    def spelling(self) -> str:
        return f"--{self.name.rstrip('_').replace('_', '-')}"

    @property
    def in_pytest(self) -> str:
        """Its spelling among the flags of pytest, where others have flags too."""
        return f"--holdfast-{self.spelling.removeprefix('--')}"


def options() -> Mapping[str, Option]:
    hints = typing.get_type_hints(RunOptions, include_extras=True)
    return {each.name: _option(each.name, hints[each.name], each.default) for each in fields(RunOptions)}


def _option(name: str, hint: Any, default: Any) -> Option:
    inner, flag = typing.get_args(hint)
    many = typing.get_origin(inner) is tuple
    kinds = typing.get_args(inner) if many or isinstance(inner, types.UnionType) else (inner,)
    return Option(name, kinds[0], many, default, flag)
