"""JSON Schema of `results.json`: what the document has beyond the records of the event stream.

Attempts, timings, transcripts, steps, faults, rows, parts and mutants come from the vocabulary
(`holdfast.reports.schema`); what the fold adds to them is written here.
"""

from collections.abc import Container

from holdfast.check.evidence import JudgedTiming
from holdfast.check.verifies import Claim
from holdfast.reports.matrix import NOT_OF_A_MUTANT, STATUSES
from holdfast.reports.result import NOT_OF_A_ROW, NOT_OF_AN_ATTEMPT, NOT_OF_AN_AUDIT
from holdfast.reports.schema import DRAFT, KIND, SHARED, VERDICT, Definitions
from holdfast.reports.text import Json
from holdfast.run.events import (
    SCHEMA,
    CheckFinished,
    KnownEntry,
    LongestCheck,
    MutantJudged,
    PartPlan,
    PlanMade,
    RowPlan,
    RunAudit,
    RunFinished,
    RunStarted,
    RunWaiting,
)
from holdfast.spec.verdict import Verdict

TEXT: Json = {"type": "string"}
SECONDS: Json = {"type": "number", "minimum": 0}
MAYBE_SECONDS: Json = {"type": ["number", "null"]}
COUNT: Json = {"$ref": "#/$defs/count"}
TEXTS: Json = {"$ref": "#/$defs/texts"}
COUNTS: Json = {"$ref": "#/$defs/counts"}

# Fields that came to the document within schema 1: a document of an older run lacks them.
ADDED = frozenset(
    {"purpose", "mutants", "cpu_s", "cores", "least_wall_s", "wall_ratio", "blocked", "narrowed", "drawn"}
    | {"alone", "waits"}
)


def results_schema() -> Json:
    defs = Definitions()
    document = _object(ADDED, **_identity(defs), **_times(defs), **_content(defs))
    own = {
        "count": {"type": "integer", "minimum": 0},
        "texts": _list(TEXT),
        "counts": {"type": "object", "propertyNames": VERDICT, "additionalProperties": COUNT},
        "requirement": _requirement(defs),
        "part": _part(defs),
        "check": _check(defs),
        "attempt": defs.record(CheckFinished, NOT_OF_AN_ATTEMPT),
        "mutant": _mutant(defs),
        "audit": defs.record(RunAudit, NOT_OF_AN_AUDIT),
    }
    return {
        "$schema": DRAFT,
        "$id": f"urn:holdfast:results:{SCHEMA}",
        "title": "Holdfast results",
        "description": "What a run answers. Every report is made from this document, and this document from "
        "events.jsonl alone. Texts hold printable characters and line feeds only; everything else is written out as an "
        "escape. Fields may be added within schema 1; none changes its meaning.",
        **document,
        "$defs": {**SHARED, **own, **dict(sorted(defs.made.items()))},
    }


def _object(without: Container[str] = (), /, **properties: Json) -> Json:
    """Returns the schema of an object that has all these properties; those in `without` may be missing."""
    required = [name for name in properties if name not in without]
    return {"type": "object", "required": required, "properties": properties}


def _list(of: Json) -> Json:
    return {"type": "array", "items": of}


def _said(schema: Json, description: str) -> Json:
    return {**schema, "description": description}


def _maybe(schema: Json, description: str = "") -> Json:
    either: Json = {"anyOf": [schema, {"type": "null"}]}
    return _said(either, description) if description else either


def _identity(defs: Definitions) -> Json:
    run = defs.some(
        RunStarted,
        *("schema", "purpose", "holdfast", "run_id", "specs", "target", "profile", "capabilities", "time_scale"),
        *("seed", "launcher", "repeat", "stress", "command", "timings", "started"),
    )
    cut_off = 'the signal that ended the run early; "cut off" when the stream has no end'
    return {
        **run,
        **defs.some(RunFinished, "leftovers"),
        "interrupted": _said({"type": ["string", "null"]}, cut_off),
        "versions": _object(holdfast=TEXT, **defs.some(RunStarted, "python", "platform", "catalogue")),
    }


def _times(defs: Definitions) -> Json:
    return {
        **defs.some(RunFinished, "wall_s", "cpu_s", "cores"),
        "least_wall_s": _said(SECONDS, "the longest check, or the work dealt over all cores: no order can beat it"),
        "wall_ratio": _said(MAYBE_SECONDS, "wall_s / least_wall_s"),
        "sum_s": _said(SECONDS, "durations of all attempts together"),
        "longest_check": _maybe(_object(check=TEXT, planned_s=MAYBE_SECONDS, duration_s=SECONDS)),
        "planned": _object(wall_s=MAYBE_SECONDS, sum_s=MAYBE_SECONDS, longest_check=_maybe(defs.refer(LongestCheck))),
        "waits": _said(_list(defs.refer(RunWaiting)), "when and why the run stood still"),
    }


def _content(defs: Definitions) -> Json:
    plan = defs.some(PlanMade, "requirements", "parts", "checks", "overlap", "faults", "alone", "left_out", "narrowed")
    nothing = {"type": "object", "maxProperties": 0}
    return {
        "plan": _object(ADDED, **plan, reconciliation=_reconciliation()),
        "summary": _summary(defs),
        "audit": _said(
            {"anyOf": [{"$ref": "#/$defs/audit"}, nothing]},
            "whether the harness was on time; empty when the stream does not say",
        ),
        "blocked": _said(
            _list(_object(cause=TEXT, reason=TEXT, checks=TEXTS, rows=TEXTS)),
            "what kept checks and rows from being judged, each cause once, the one that blocks most first",
        ),
        "requirements": _list({"$ref": "#/$defs/requirement"}),
        "checks": _said(
            _list({"$ref": "#/$defs/check"}),
            "in a run of mutants: the checks that raised a false alarm, with the attempts on clean copies that did",
        ),
        "mutants": _said(_list({"$ref": "#/$defs/mutant"}), "empty unless the purpose of the run is mutants"),
    }


def _reconciliation() -> Json:
    return _object(
        rows_planned=COUNT,
        rows_decided=_said(COUNT, "rows whose verdict is neither inconclusive, error nor not-observable"),
        checks_planned=COUNT,
        checks_finished=COUNT,
        missing=_said(TEXTS, "checks that were planned and never finished"),
        unexpected=_said(TEXTS, "checks that finished without being planned"),
        notes=TEXTS,
        agrees={"type": "boolean"},
    )


def _summary(defs: Definitions) -> Json:
    mutants = _object(
        ADDED,
        **dict.fromkeys(STATUSES, COUNT),
        mutants=COUNT,
        clean_runs=_said(COUNT, "checks that ran against clean copies"),
        false_alarms=_said(
            {"type": "object", "additionalProperties": TEXT}, "checks that failed on a clean copy, and why"
        ),
        **defs.some(PlanMade, "violations", "covered_violations"),
        drawn=_maybe(_power(defs), "null unless the mutants are drawn"),
    )
    return _object(
        ADDED,
        **dict.fromkeys(map(str, Verdict), COUNT),
        rows=COUNT,
        checks=COUNTS,
        check_runs=_said(COUNT, "attempts of all repeats of all checks"),
        inconclusive_after_retry=COUNT,
        mutants=_maybe(mutants, "null unless the purpose of the run is mutants"),
        **defs.some(PlanMade, "narrowed"),
        exit={"type": "integer"},
    )


def _power(defs: Definitions) -> Json:
    return _object(
        rate=_maybe({"type": "number"}, "killed of those judged; null when none was"),
        goal={"type": "number"},
        judged=_said(COUNT, "killed or survived; those that are equivalent or stillborn are not counted"),
        killed=COUNT,
        equivalent=COUNT,
        **defs.some(PlanMade, "stillborn"),
    )


def _requirement(defs: Definitions) -> Json:
    timing = {"allOf": [defs.refer(JudgedTiming), _object(check=TEXT, repeat={"type": "integer"})]}
    finding = {"allOf": [{"$ref": "#/$defs/attempt"}, _object(check=TEXT, title=TEXT)]}
    return _object(
        **defs.properties(RowPlan, NOT_OF_A_ROW),
        verdict=VERDICT,
        kind=KIND,
        reason=TEXT,
        blocked_by=_said({"type": ["string", "null"]}, "the cause in `blocked` that kept the row from being judged"),
        parts={**_list({"$ref": "#/$defs/part"}), "minItems": 1},
        checks=TEXTS,
        timings=_list(timing),
        finding=_maybe(
            finding, "the deciding attempt of the worst check; none for a row that passed or was not looked at"
        ),
    )


def _part(defs: Definitions) -> Json:
    planned = defs.some(PartPlan, "part", "needs", "observe", "reason", "hook", "unseen", "checks", "left_out")
    return _object(**planned, verdict=VERDICT)


def _check(defs: Definitions) -> Json:
    return _object(
        **defs.some(CheckFinished, "check", "title", "reason", "planned_s", "isolation", "command"),
        planned={"type": "boolean"},
        verdict=VERDICT,
        kind=KIND,
        blocked_by=_said({"type": ["string", "null"]}, "the cause in `blocked` that kept the check from judging"),
        verifies=_list(defs.refer(Claim)),
        repeats=_said(COUNTS, "final attempts by verdict"),
        duration_s=SECONDS,
        known=_maybe(defs.refer(KnownEntry)),
        attempts=_list({"$ref": "#/$defs/attempt"}),
    )


def _mutant(defs: Definitions) -> Json:
    duration = _said(SECONDS, "durations of all attempts against this mutant")
    return _object(ADDED, **defs.properties(MutantJudged, NOT_OF_A_MUTANT), duration_s=duration)
