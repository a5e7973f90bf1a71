"""The vocabulary of a run's event stream.

A run tells what happens as events: the run began, this is the plan, a check started, waits, finished, a mutant was
judged, the harness was on time, the run ended. Each kind is one class here, and everything that speaks of events comes
from these classes (what a single check leaves behind is in `holdfast.check.evidence`): whoever emits them, the lines of
`events.jsonl`, the fold that makes results of them, the JSON Schema of both, and the streams that tests are written
with.

On disk an event is one JSON object a line: `event` is the kind, `at` the seconds since the run began, the rest are the
fields of the class. Readers leave alone what they do not know, and every field has a value that means "not said",
so that streams of other versions and torn ones can still be read.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from holdfast.check.evidence import FaultSeen, JudgedTiming, Step, TranscriptLine, WalkSeen
from holdfast.check.verifies import Claim

SCHEMA = 1
Purpose = Literal["conformance", "chaos", "mutants", "walks"]
MutantStatus = Literal["killed", "survived", "excluded", "not-judged"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """`at` is stamped by the stream."""

    kind_of_event: ClassVar[str] = ""
    at: float = 0.0


@dataclass(frozen=True)
class TargetFacts:
    name: str = ""
    version: str = ""
    spec: str = ""
    file: str | None = None
    roles: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TimingInForce:
    """A duration of the catalogue as this run uses it."""

    kind: str = ""
    value_s: float = 0.0
    scaled_s: float = 0.0
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    kind_of_event: ClassVar[str] = "run.started"
    schema: int = SCHEMA
    purpose: Purpose = "conformance"
    holdfast: str = ""
    run_id: str = ""
    specs: list[str] = field(default_factory=list)
    catalogue: dict[str, str] = field(default_factory=dict)
    target: TargetFacts = field(default_factory=TargetFacts)
    profile: str = ""
    capabilities: list[str] = field(default_factory=list)
    time_scale: float = 1.0
    seed: int | None = None
    launcher: str = ""
    engine: str | None = None
    repeat: int = 1
    stress: int | None = None
    python: str = ""
    platform: str = ""
    started: str = ""
    command: str = ""
    timings: dict[str, TimingInForce] = field(default_factory=dict)


@dataclass(frozen=True)
class DocumentFacts:
    """The public document that a row is read from; `lines` of a row are lines of it."""

    title: str = ""
    repository: str = ""
    path: str = ""
    commit: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A check, or a row, that the run leaves out, and why."""

    id: str = ""
    reason: str = ""


@dataclass(frozen=True)
class PartPlan:
    """One part of a row; `status` is planned, not-observable, excluded, not-applicable or outside-profile.

    `left_out` are checks of the part that the profile asks for and this run does without.
    """

    part: int = 1
    needs: list[str] = field(default_factory=list)
    observe: str = ""
    status: str = "planned"
    reason: str = ""
    hook: str | None = None
    unseen: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    known: bool = False


@dataclass(frozen=True)
class RowPlan:
    id: str = ""
    spec: str = ""
    level: str = ""
    title: str = ""
    text: str = ""
    section: str = ""
    lines: str = ""
    origin: str = ""
    violations: int = 0
    excluded: str | None = None
    document: DocumentFacts | None = None
    load: str = ""
    parts: list[PartPlan] = field(default_factory=list)
    known: bool = False


@dataclass(frozen=True)
class DrawnChange:
    """The one change of a drawn mutant. No row names it, so its place in the reference does."""

    module: str = ""
    function: str = ""
    kind: str = ""
    place: str = ""
    diff: str = ""


@dataclass(frozen=True)
class MutantPlan:
    """A mutant that the run is to judge; `declared` are the other rows that it cannot but break.

    A drawn one has no requirement; `excluded` is then the argument that it is equivalent to the original.
    """

    id: str = ""
    requirement: str = ""
    violation: str = ""
    declared: list[str] = field(default_factory=list)
    excluded: str | None = None
    drawn: DrawnChange | None = None


@dataclass(frozen=True)
class Stillborn:
    """A drawn mutant that did not start, so another was drawn for it."""

    id: str = ""
    reason: str = ""
    diff: str = ""


@dataclass(frozen=True)
class LongestCheck:
    check: str = ""
    planned_s: float = 0.0


@dataclass(frozen=True)
class Alone:
    """Checks that run one after the other when all others have ended, and the standing wait before them."""

    checks: int = 0
    settle_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PlanMade(Event):
    """What the run promises: announced before the first check, reconciled after the last.

    `narrowed` says by which options the run looks at less than the whole suite; empty for a whole run. `alone` is None
    where every check may run beside others.
    """

    kind_of_event: ClassVar[str] = "plan"
    requirements: int = 0
    parts: int = 0
    checks: int = 0
    overlap: int = 0
    faults: int = 0
    planned_wall_s: float | None = None
    planned_sum_s: float | None = None
    longest_check: LongestCheck | None = None
    alone: Alone | None = None
    left_out: list[LeftOut] = field(default_factory=list)
    narrowed: list[str] = field(default_factory=list)
    rows: list[RowPlan] = field(default_factory=list)
    mutants: list[MutantPlan] = field(default_factory=list)
    covered_violations: int = 0
    violations: int = 0
    stillborn: list[Stillborn] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RunWaiting(Event):
    """The run pauses, and this is why; `for_s` is None where nobody knows for how long.

    The wait for a target that is slow to start comes before the run has begun, so it is shown and not written.
    """

    kind_of_event: ClassVar[str] = "run.waiting"
    waiting_for: str = ""
    for_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class CheckStarted(Event):
    """`variant` names the mutant that the check runs against; empty for the target itself and for clean copies."""

    kind_of_event: ClassVar[str] = "check.started"
    check: str = ""
    title: str = ""
    planned_s: float | None = None
    attempt: int = 1
    repeat: int = 1
    variant: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckWaiting(Event):
    """What a running check waits for. Shown, never written: it is progress, not a result."""

    kind_of_event: ClassVar[str] = "check.waiting"
    check: str = ""
    repeat: int = 1
    variant: str = ""
    waiting_for: str = ""
    until_s: float | None = None


@dataclass(frozen=True)
class KnownEntry:
    """The entry of [known_failures] that speaks of the check."""

    reason: str = ""
    link: str = ""
    expires: str | None = None


@dataclass(frozen=True, kw_only=True)
class CheckFinished(Event):
    """One attempt of one repeat of one check; `final` unless it is tried once more.

    `decided` are the rows that the verdict is about, where that is not all of `verifies`.
    """

    kind_of_event: ClassVar[str] = "check.finished"
    check: str = ""
    title: str = ""
    attempt: int = 1
    repeat: int = 1
    variant: str = ""
    final: bool = True
    verdict: str = ""
    kind: str | None = None
    reason: str = ""
    verifies: list[Claim] = field(default_factory=list)
    started_s: float = 0.0
    duration_s: float = 0.0
    planned_s: float | None = None
    isolation: str = ""
    expected: list[str] = field(default_factory=list)
    seen: str | None = None
    further: list[str] = field(default_factory=list)
    unsafe: bool = False
    blocked_by: str | None = None
    transcript: list[TranscriptLine] = field(default_factory=list)
    transcript_dropped: int = 0
    timings: list[JudgedTiming] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    faults: list[FaultSeen] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    walk: WalkSeen | None = None
    schedule: str = ""
    decided: list[str] | None = None
    command: str = ""
    known: KnownEntry | None = None


@dataclass(frozen=True, kw_only=True)
class MutantJudged(Event):
    """What became of one mutant: `by` are its own row's checks that caught it, `also` the other rows that fell."""

    kind_of_event: ClassVar[str] = "mutant.judged"
    id: str = ""
    requirement: str = ""
    violation: str = ""
    status: MutantStatus = "not-judged"
    by: list[str] = field(default_factory=list)
    also: list[str] | None = None
    declared: list[str] = field(default_factory=list)
    reason: str = ""
    drawn: DrawnChange | None = None


@dataclass(frozen=True, kw_only=True)
class RunAudit(Event):
    """Whether the harness itself was on time."""

    kind_of_event: ClassVar[str] = "run.audit"
    loop_lag_ms: dict[str, float] = field(default_factory=dict)
    loop_stalls: int = 0
    longest_stalls: list[dict[str, float]] = field(default_factory=list)
    held_the_loop: dict[str, int] = field(default_factory=dict)
    cpu_pressure_avg10: float | None = None
    steal_pct: float | None = None
    harness_cpu_s: float | None = None
    harness_run_queue_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunFinished(Event):
    kind_of_event: ClassVar[str] = "run.finished"
    wall_s: float | None = None
    cpu_s: float | None = None
    cores: int | None = None
    exit: int | None = None
    interrupted: str | None = None
    leftovers: list[str] = field(default_factory=list)


KINDS: Mapping[str, type[Event]] = {
    kind.kind_of_event: kind
    for kind in (
        RunStarted,
        PlanMade,
        RunWaiting,
        CheckStarted,
        CheckWaiting,
        CheckFinished,
        MutantJudged,
        RunAudit,
        RunFinished,
    )
}


def encode(event: Event) -> dict[str, Any]:
    """The event as its line in the stream, ready for `json.dumps(…, default=vars)`: nested records stay objects."""
    return {"event": event.kind_of_event, **vars(event)}


def decode(record: Mapping[str, Any]) -> Event | None:
    """The event of a line, or None for a kind that this version does not know."""
    kind = KINDS.get(str(record.get("event")))
    return None if kind is None else _read(kind, record)


def _read(kind: type[Any], record: Mapping[str, Any]) -> Any:
    hints = _hints(kind)  # type: ignore[arg-type]  # classes are hashable
    return kind(**{name: _value(hints[name], record[name]) for name in hints if name in record})


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _value(hint: Any, value: Any) -> Any:
    """The value with its nested records as objects; whatever else was written stays as it is."""
    if is_dataclass(hint):
        return _read(typing.cast("type[Any]", hint), value) if isinstance(value, Mapping) else value
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case types.UnionType:
            nested = next((each for each in arguments if is_dataclass(each)), None)
            return _value(nested, value) if nested else value
        case origin if origin is list and isinstance(value, list) and is_dataclass(arguments[0]):
            return [_value(arguments[0], item) for item in value]
        case origin if origin is dict and isinstance(value, Mapping) and is_dataclass(arguments[1]):
            return {name: _value(arguments[1], item) for name, item in value.items()}
    return value
