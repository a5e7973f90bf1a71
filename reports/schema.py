"""JSON Schema of what a run leaves behind, made from the vocabulary of the event stream.

`python -m holdfast.reports.schema` writes `events.schema.json` and `results.schema.json`; a test fails when a file is
not what this module makes. Every record class of `holdfast.run.events` becomes a definition: its fields with their
types, all of them required, because a run writes them all. `REMARKS` adds what a type cannot say. What a document of
results has beyond the records is in `holdfast.reports.document`.
"""

import types
import typing
from collections.abc import Container
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from holdfast.check.evidence import JudgedTiming, Step, TranscriptLine
from holdfast.check.timeline import Judgement
from holdfast.check.verifies import Claim
from holdfast.reports.text import Json
from holdfast.run.events import (
    KINDS,
    SCHEMA,
    CheckFinished,
    CheckStarted,
    CheckWaiting,
    Event,
    MutantJudged,
    PartPlan,
    PlanMade,
    RowPlan,
    RunFinished,
    RunStarted,
    TargetFacts,
)
from holdfast.spec.catalogue import LEVELS, TimingKind
from holdfast.spec.verdict import Kind, Verdict

FOLDER = Path(__file__).parent
DRAFT = "https://json-schema.org/draft/2020-12/schema"

COUNT: Json = {"minimum": 0}
NUMBER: Json = {"minimum": 1}
VERDICT: Json = {"$ref": "#/$defs/verdict"}
KIND: Json = {"$ref": "#/$defs/kind"}
SHARED: Json = {"verdict": {"enum": list(map(str, Verdict))}, "kind": {"enum": [*map(str, Kind), None]}}

# What the type of a field cannot say: its limits, its unit, what it means. `$ref` and `enum` replace the type.
REMARKS: dict[type, dict[str, Json]] = {
    RunStarted: {
        "schema": {"const": SCHEMA},
        "holdfast": {"description": "version of Holdfast"},
        "time_scale": {"exclusiveMinimum": 0, "description": "1 is the spec's own time"},
        "repeat": NUMBER,
        "command": {"description": "how the run was called"},
        "started": {"description": "ISO 8601; empty when the stream does not say"},
        "timings": {"description": "the timings in force, by name"},
    },
    TargetFacts: {
        "file": {"description": "the descriptor; null for a built-in one"},
        "roles": {"description": "how many nodes of each role the descriptor lists"},
    },
    PlanMade: dict.fromkeys(("requirements", "parts", "checks", "overlap", "faults", "violations"), COUNT)
    | {"narrowed": {"description": "by which options the run looks at less than its suite; empty for a whole run"}}
    | {"covered_violations": {**COUNT, "description": "named violations that have a mutant or a reason for none"}},
    PartPlan: {
        "part": {**NUMBER, "description": "1 is the main part"},
        "status": {"enum": ["planned", "not-observable", "excluded", "not-applicable", "outside-profile"]},
        "hook": {"description": "the one entry of the descriptor that would make it observable"},
        "unseen": {"description": "violations that stay unseen"},
        "left_out": {"description": "checks of the part that the profile asks for and this run does without"},
    },
    RowPlan: {
        "id": {"minLength": 1},
        "level": {"enum": list(LEVELS)},
        "lines": {"description": "where the spec states it"},
        "document": {"description": "the public document that `lines` are lines of"},
        "load": {"description": "what a load campaign should look at beyond the checks"},
        "violations": COUNT,
    },
    CheckStarted: {"check": {"description": "the pytest node id"}, "attempt": NUMBER, "repeat": NUMBER},
    CheckFinished: {
        "check": {"description": "the pytest node id"},
        "attempt": NUMBER,
        "repeat": NUMBER,
        "final": {"description": "false for an inconclusive attempt that was tried once more"},
        "verdict": VERDICT,
        "kind": KIND,
        "started_s": {"description": "since the run's start"},
        "duration_s": COUNT,
        "expected": {"description": "every legal alternative"},
        "further": {"description": "other findings of the same attempt, a sentence each"},
        "unsafe": {"description": "no delay of any machine could have caused the finding"},
        "blocked_by": {"description": "what kept the check from judging, in the same words for all that it blocks"},
        "transcript_dropped": COUNT,
        "command": {"description": "repeats the check"},
        "faults": {"description": "what was injected when"},
    },
    MutantJudged: {
        "by": {"description": "the checks of its own row that caught it"},
        "also": {"description": "other rows that fell; null when only its own row's checks ran"},
        "declared": {"description": "other rows that break with its own"},
        "drawn": {"description": "the change of a drawn mutant; null for one that the catalogue lists"},
    },
    RunFinished: {
        "cpu_s": {"description": "processor seconds of runner, guardian, nodes and all else that the run started"},
        "cores": {"description": "processors that the run might use"},
        "interrupted": {"description": "the signal that ended the run early"},
        "leftovers": {"description": "what the run could not clean up"},
    },
    Claim: {"part": {**NUMBER, "description": "1 is the main part"}},
    TranscriptLine: {
        "t": {"description": "milliseconds since the attempt's start"},
        "dir": {
            "enum": ["→", "←", "⇢", "·", "!"],
            "description": "sent, received, received by a peer that the suite plays, remark, fault",
        },
    },
    JudgedTiming: {
        "kind": {"description": ", ".join(TimingKind)},
        "floor_s": {"description": "what does not shrink with the time scale"},
        "observed_s": {
            "minItems": 2,
            "maxItems": 2,
            "items": {"type": ["number", "null"]},
            "description": "last known not yet, first known; an open end is null",
        },
        "margin": {"description": "share of the budget that was left: 0 is the edge, below 0 it was missed"},
        "verdict": {
            "enum": [*map(str, Judgement), None],
            "description": "straddles: the observation lies on both sides of the limit; "
            "machine: late, but the harness's own lag explains it",
        },
    },
    Step: {"start_ms": {"description": "since the attempt's start"}},
}


class Definitions:
    """JSON Schema of record classes; `made` collects a definition for each class that another one refers to."""

    def __init__(self) -> None:
        self.made: Json = {}

    def record(self, kind: type[Any], without: Container[str] = ()) -> Json:
        """Returns the schema of an object with the fields of `kind`."""
        properties = self.properties(kind, without)
        return {**_described(kind), "type": "object", "required": list(properties), "properties": properties}

    def properties(self, kind: type[Any], without: Container[str] = ()) -> Json:
        hints = typing.get_type_hints(kind)
        remarks = REMARKS.get(kind, {})
        names = [each.name for each in fields(kind)]
        if unknown := remarks.keys() - set(names):
            raise KeyError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}: mend REMARKS")
        return {name: _joined(self.of(hints[name]), remarks.get(name, {})) for name in names if name not in without}

    def some(self, kind: type[Any], *names: str) -> Json:
        """Returns the properties of these fields alone."""
        properties = self.properties(kind)
        return {name: properties[name] for name in names}

    def refer(self, kind: type[Any]) -> Json:
        if kind.__name__ not in self.made:
            self.made[kind.__name__] = self.record(kind)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def of(self, hint: Any) -> Json:
        """Returns the schema of a type."""
        if is_dataclass(hint):
            return self.refer(typing.cast("type[Any]", hint))
        arguments = typing.get_args(hint)
        match typing.get_origin(hint):
            case types.UnionType:
                (inner,) = (each for each in arguments if each is not types.NoneType)
                return _or_null(self.of(inner))
            case origin if origin is list:
                return {"type": "array", "items": self.of(arguments[0])}
            case origin if origin is dict:
                return {"type": "object", "additionalProperties": self.of(arguments[1])}
            case origin if origin is Literal:
                return {"enum": list(arguments)}
        return dict(_PLAIN[hint])


_PLAIN: dict[Any, Json] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
}


def _or_null(schema: Json) -> Json:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _joined(schema: Json, remark: Json) -> Json:
    return dict(remark) if remark.keys() & {"$ref", "enum", "const"} else schema | remark


def _described(kind: type[Any]) -> Json:
    """Returns the docstring of the class as description, unless it is the signature that `dataclass` puts there."""
    text = kind.__doc__ or ""
    return {} if text.startswith(f"{kind.__name__}(") else {"description": " ".join(text.split())}


def events_schema() -> Json:
    """Returns the schema of one line of `events.jsonl`."""
    defs = Definitions()
    written = [kind for kind in KINDS.values() if kind is not CheckWaiting]
    lines = {kind.__name__: _line(defs, kind) for kind in written}
    return {
        "$schema": DRAFT,
        "$id": f"urn:holdfast:events:{SCHEMA}",
        "title": "Holdfast events",
        "description": "One line of events.jsonl. A run appends them as things happen, so a stream may end anywhere "
        "and its last line may be torn. Kinds and fields may be added within schema 1, none changes its meaning, so "
        "readers leave alone what they do not know. Texts of a target are as they came.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": {**SHARED, **lines, **dict(sorted(defs.made.items()))},
    }


def _line(defs: Definitions, kind: type[Event]) -> Json:
    record = defs.record(kind)
    return {
        **record,
        "required": ["event", *record["required"]],
        "properties": {"event": {"const": kind.kind_of_event}, **record["properties"]},
    }


def files() -> dict[Path, str]:
    """Returns each schema file with the text that it must have."""
    from holdfast.reports.document import results_schema
    from holdfast.reports.files import to_text

    return {
        FOLDER / "events.schema.json": to_text(events_schema()),
        FOLDER / "results.schema.json": to_text(results_schema()),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, "utf-8")
