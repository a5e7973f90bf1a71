"""The schema files describe what runs really write, and come from the vocabulary alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from holdfast.check.evidence import FaultSeen, ReceiptSeen
from holdfast.reports import schema
from holdfast.reports.model import fold_events
from holdfast.reports.text import Json
from holdfast.run.events import KINDS, CheckFinished, CheckWaiting, Event, KnownEntry, RunStarted
from holdfast.spec.verdict import Verdict
from tests.reports.streams import (
    EVIDENCE,
    RATE,
    drawn_run,
    ended,
    finished,
    hostile_run,
    lines,
    mutant_run,
    part,
    plan,
    row,
    small_run,
    started,
)


def stored(name: str) -> Json:
    document: Json = json.loads((schema.FOLDER / name).read_text("utf-8"))
    return document


EVENTS, RESULTS = stored("events.schema.json"), stored("results.schema.json")
FAULT = FaultSeen("pause", "n1", "pause n1", 0.1, 0.2, 1.0, [ReceiptSeen("silent for 0.8 s", proven=True)], proven=True)


def faulty_run() -> list[Event]:
    check = finished(
        RATE, "known", ("AD-RATE-03", 1), faults=[FAULT], known=KnownEntry("pending", "", None), **EVIDENCE
    )
    return [started(purpose="chaos", engine="relay"), plan(row("AD-RATE-03", part(1, [RATE]))), check, ended()]


RUNS = [small_run(), hostile_run(), mutant_run(), drawn_run(), faulty_run()]


@pytest.mark.parametrize(("path", "text"), schema.files().items(), ids=lambda value: getattr(value, "name", ""))
def test_the_files_are_what_the_module_makes(path: Path, text: str) -> None:
    assert path.read_text("utf-8") == text, "run python -m holdfast.reports.schema"


@pytest.mark.parametrize("document", [EVENTS, RESULTS])
def test_the_schemas_are_themselves_valid(document: Json) -> None:
    Draft202012Validator.check_schema(document)
    assert set(document["$defs"]["verdict"]["enum"]) == set(Verdict)


@pytest.mark.parametrize("events", RUNS)
def test_every_line_of_a_stream_is_valid(events: list[Event]) -> None:
    for line in lines(events).splitlines():
        Draft202012Validator(EVENTS).validate(json.loads(line))


@pytest.mark.parametrize("events", RUNS)
def test_results_are_valid_wherever_the_stream_is_cut(events: list[Event]) -> None:
    for length in range(len(events) + 1):
        Draft202012Validator(RESULTS).validate(fold_events(events[:length]).to_json())


def test_every_kind_of_event_that_is_written_has_its_definition() -> None:
    described = {
        EVENTS["$defs"][each["$ref"].rpartition("/")[2]]["properties"]["event"]["const"] for each in EVENTS["oneOf"]
    }
    assert described == KINDS.keys() - {CheckWaiting.kind_of_event}


@pytest.mark.parametrize(
    ("field", "value"),
    [("verdict", "green"), ("attempt", 0), ("transcript", [{"t": 0.0}]), ("known", "yes"), ("check", None)],
)
def test_a_line_that_says_something_else_is_not_valid(field: str, value: Any) -> None:
    record = json.loads(lines([finished(RATE)]))
    assert Draft202012Validator(EVENTS).is_valid(record)
    assert not Draft202012Validator(EVENTS).is_valid({**record, field: value})


def test_a_line_with_a_field_or_a_kind_missing_is_not_valid() -> None:
    record = json.loads(lines([finished(RATE)]))
    for name in record:
        assert not Draft202012Validator(EVENTS).is_valid({key: value for key, value in record.items() if key != name})


def test_a_document_of_an_older_run_is_still_valid() -> None:
    document = fold_events(small_run()).to_json()
    drawn = fold_events(mutant_run()).to_json()
    del drawn["summary"]["mutants"]["drawn"], drawn["mutants"][0]["drawn"]
    Draft202012Validator(RESULTS).validate(drawn)
    del document["purpose"], document["mutants"], document["summary"]["mutants"]
    Draft202012Validator(RESULTS).validate(document)


def test_a_remark_about_a_field_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema.REMARKS, RunStarted, {"gone": {}})
    with pytest.raises(KeyError, match="RunStarted has no field gone"):
        schema.events_schema()


def test_types_become_their_schema() -> None:
    @dataclass
    class Inner:
        """What it is."""

        name: str

    @dataclass
    class Outer:
        several: list[Inner]
        by_name: dict[str, float]
        maybe: Inner | None
        number: int | None
        whatever: Any

    defs = schema.Definitions()
    assert defs.properties(Outer) == {
        "several": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
        "by_name": {"type": "object", "additionalProperties": {"type": "number"}},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]},
        "number": {"type": ["integer", "null"]},
        "whatever": {},
    }
    assert defs.made["Inner"] == {
        "description": "What it is.",
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    }


def test_an_attempt_has_every_field_of_the_event_but_those_of_its_check() -> None:
    attempt = RESULTS["$defs"]["attempt"]["properties"].keys()
    assert set(vars(CheckFinished())) - attempt == {"at", "check", "title", "variant", "verifies"}
