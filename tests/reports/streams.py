"""Hand-made event streams for the tests of `reports/`, built with the vocabulary that runs write."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.check.evidence import JudgedTiming, Step, TranscriptLine
from holdfast.check.verifies import Claim
from holdfast.run.events import (
    CheckFinished,
    CheckStarted,
    DrawnChange,
    Event,
    KnownEntry,
    LongestCheck,
    MutantJudged,
    MutantPlan,
    PartPlan,
    PlanMade,
    RowPlan,
    RunAudit,
    RunFinished,
    RunStarted,
    Stillborn,
    TargetFacts,
    TimingInForce,
    encode,
)

HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m ]]> \x00 \ud800 [bold]loud[/bold] </script> \u202e & \"'"

RATE = "conformance/admission/test_rate.py::test_a_burst_across_a_window_border_is_locked"
STATE = "conformance/admission/test_state.py::test_a_second_node_sees_the_same_queue"
DRAIN = "conformance/admission/test_drain.py::test_a_drain_ends_in_time[60]"


def lines(events: Iterable[Event]) -> str:
    """The events as a run writes them into `events.jsonl`."""
    return "".join(json.dumps(encode(event), default=vars) + "\n" for event in events)


def started(**more: Any) -> RunStarted:
    usual: dict[str, Any] = {
        "holdfast": "0.1.0",
        "run_id": "r-1",
        "specs": ["admission"],
        "catalogue": {"admission": "1.0"},
        "target": TargetFacts("mine", "2.3", "admission", "mine.toml"),
        "profile": "control",
        "capabilities": ["wire", "redis"],
        "time_scale": 0.2,
        "seed": 7,
        "launcher": "fork",
        "stress": 0,
        "python": "3.11.7",
        "platform": "linux",
        "started": "2026-11-16T07:00:00+00:00",
        "command": "holdfast run admission --target mine.toml",
        "timings": {"rate_window": TimingInForce("seed", 60.0, 12.0, "seed §3")},
    }
    return RunStarted(**usual | more)


def part(number: int = 1, checks: Sequence[str] = (), **more: Any) -> PartPlan:
    usual: dict[str, Any] = {"needs": ["wire"], "observe": "Five failures around a border, then one more."}
    return PartPlan(part=number, checks=list(checks), **usual | more)


def row(requirement: str, *parts: PartPlan, **more: Any) -> RowPlan:
    usual: dict[str, Any] = {
        "spec": "admission",
        "level": "MUST",
        "title": "The 60 s window truly rolls",
        "text": "Every failure counts for exactly 60 s and leaves the window on its own.",
        "section": "seed §3 Rate Limiting",
        "lines": "30-31",
        "origin": "seed",
        "violations": 2,
    }
    return RowPlan(id=requirement, parts=list(parts), **usual | more)


def plan(*rows: RowPlan, **more: Any) -> PlanMade:
    parts = [part for row in rows for part in row.parts]
    usual: dict[str, Any] = {
        "at": 0.1,
        "requirements": len(rows),
        "parts": len(parts),
        "checks": len({check for part in parts for check in part.checks}),
        "overlap": 24,
        "planned_wall_s": 20.0,
        "planned_sum_s": 30.0,
        "longest_check": LongestCheck(RATE, 12.0),
    }
    return PlanMade(rows=list(rows), **usual | more)


def begun(check: str, **more: Any) -> CheckStarted:
    return CheckStarted(**{"at": 0.2, "check": check, **more})


def finished(check: str, verdict: str = "pass", *verifies: tuple[str, int], **more: Any) -> CheckFinished:
    usual: dict[str, Any] = {
        "at": 6.3,
        "title": "a burst across a window border is locked",
        "kind": "violates" if verdict == "fail" else None,
        "started_s": 0.2,
        "duration_s": 6.1,
        "planned_s": 5.0,
        "isolation": "shared",
        "command": "holdfast run admission --only AD-RATE-03 --target mine.toml",
    }
    claims = [Claim(requirement, number) for requirement, number in verifies]
    return CheckFinished(check=check, verdict=verdict, verifies=claims, **usual | more)


def ended(code: int = 0, **more: Any) -> RunFinished:
    usual: dict[str, Any] = {"at": 7.0, "wall_s": 7.0, "exit": code}
    return RunFinished(**usual | more)


TIMING = JudgedTiming(
    name="rate_window",
    source="seed §3 (L30-31)",
    kind="seed",
    budget_s=12.0,
    floor_s=0.25,
    tolerance_s=0.4,
    observed_s=[11.9, 11.95],
    margin=0.03,
    verdict="holds",
)

EVIDENCE: dict[str, Any] = {
    "expected": ["429 RATE_LIMITED on the 6th attempt (5 failures within 6.1 s)", "503 during an outage"],
    "seen": "200 success",
    "transcript": [
        TranscriptLine(0.0, "→", "POST /instances/i1/connect  clientBuild=stale"),
        TranscriptLine(3.1, "←", "200 failed VERSION_MISMATCH  remaining 4"),
        TranscriptLine(80.0, "!", "link redis cut", {"bytes": 312}),
        TranscriptLine(6087.4, "→", "POST /instances/i1/connect  clientBuild=dev-build"),
        TranscriptLine(6090.0, "←", "200 success"),
    ],
    "timings": [replace(TIMING, observed_s=[13.1, 13.2], margin=-0.09, verdict="missed")],
    "steps": [Step("three failures", 0.0, 30.5, "pass")],
}


def small_run() -> list[Event]:
    """A row that fails, one that is partial, one that passes on the second attempt, one out of sight."""
    blind = part(
        2,
        needs=["multi_node"],
        status="not-observable",
        reason="needs multi_node",
        hook="a second [[node]]",
        unseen=["Each node keeps its own queue."],
    )
    out_of_sight = part(status="not-observable", reason="needs clock", hook="[settings] clock_offset", needs=["clock"])
    return [
        started(),
        plan(
            row("AD-RATE-03", part(1, [RATE])),
            row("AD-STATE-01", part(1, [STATE]), blind, title="Live state is shared"),
            row("AD-DRAIN-02", part(1, [DRAIN]), level="SHOULD", title="A drain ends in time"),
            row("AD-CLOCK-01", out_of_sight, title="Node clocks do not matter"),
        ),
        begun(RATE),
        finished(RATE, "fail", ("AD-RATE-03", 1), **EVIDENCE),
        finished(STATE, "pass", ("AD-STATE-01", 1), title="a second node sees the same queue", timings=[TIMING]),
        finished(DRAIN, "inconclusive", ("AD-DRAIN-02", 1), final=False, reason="machine stalled", title="drain"),
        finished(DRAIN, "pass", ("AD-DRAIN-02", 1), attempt=2, title="a drain ends in time", duration_s=0.085),
        RunAudit(
            at=6.9,
            loop_lag_ms={"p50": 0.4, "p99": 18.25, "max": 41.0},
            loop_stalls=1,
            longest_stalls=[{"at_s": 3.0, "ms": 61.0, "worked_ms": 2.0}],
            held_the_loop={"parse": 1},
            cpu_pressure_avg10=3.5,
        ),
        ended(1),
    ]


def hostile_run() -> list[Event]:
    """A target whose every answer tries to break the page, the file or the terminal that shows it."""
    return [
        started(target=TargetFacts(HOSTILE, HOSTILE, "admission", "mine.toml")),
        plan(row("AD-RATE-03", part(1, [RATE], hook=HOSTILE, unseen=[HOSTILE]), title=HOSTILE, text=HOSTILE)),
        finished(
            RATE,
            "fail",
            ("AD-RATE-03", 1),
            reason=HOSTILE,
            title=HOSTILE,
            expected=[HOSTILE],
            seen=HOSTILE,
            transcript=[TranscriptLine(1.0, "←", HOSTILE, {HOSTILE: HOSTILE})],
            warnings=[HOSTILE],
            steps=[Step(HOSTILE, 0.0, 1.0, "fail")],
            timings=[replace(TIMING, note=HOSTILE, name=HOSTILE, margin=float("nan"))],
            command=HOSTILE,
            known=KnownEntry(HOSTILE, "javascript:alert(1)", "2027-01-01"),
        ),
        ended(1),
    ]


KILLED, SURVIVOR, EXCLUDED, OPEN = "AD-RATE-03/1", "AD-RATE-03/2", "AD-STATE-01/1", "AD-DRAIN-02/1"
MUTANTS = [
    MutantPlan(KILLED, "AD-RATE-03", "One counter key per window period.", ["AD-RATE-04"]),
    MutantPlan(SURVIVOR, "AD-RATE-03", "Failures never leave the window."),
    MutantPlan(EXCLUDED, "AD-STATE-01", "Each node keeps its own queue.", excluded="needs a second machine"),
    MutantPlan(OPEN, "AD-DRAIN-02", "A drain never ends."),
]


def mutants(*planned: MutantPlan, **more: Any) -> PlanMade:
    return plan(**{"mutants": list(planned), "checks": 3, "violations": 9, "covered_violations": 6, **more})


def judged(mutant: MutantPlan, status: str, **more: Any) -> MutantJudged:
    usual: dict[str, Any] = {
        "at": 6.8,
        "id": mutant.id,
        "requirement": mutant.requirement,
        "violation": mutant.violation,
        "declared": mutant.declared,
        "status": status,
    }
    return MutantJudged(**usual | more)


def mutant_run() -> list[Event]:
    """One mutant killed, one that survived, one excluded, one that no check could judge, and a false alarm."""
    killed, survivor, excluded, unclear = MUTANTS
    return [
        started(purpose="mutants", command="holdfast mutants admission"),
        mutants(*MUTANTS),
        begun(RATE, variant=KILLED),
        begun(RATE),
        finished(RATE, "fail", ("AD-RATE-03", 1), variant=KILLED),
        finished(RATE, "pass", ("AD-RATE-03", 1), variant=SURVIVOR, duration_s=2.0),
        finished(RATE, "pass", ("AD-RATE-03", 1)),
        finished(DRAIN, "inconclusive", ("AD-DRAIN-02", 1), variant=OPEN, final=False, duration_s=0.5),
        finished(DRAIN, "inconclusive", ("AD-DRAIN-02", 1), variant=OPEN, attempt=2, duration_s=0.5),
        finished(
            STATE, "fail", ("AD-STATE-01", 1), title="a second node sees the same queue", reason="late", **EVIDENCE
        ),
        judged(killed, "killed", by=[RATE], also=["AD-RATE-04", "AD-FLAP-01"]),
        judged(survivor, "survived", also=[]),
        judged(excluded, "excluded", reason="needs a second machine"),
        judged(unclear, "not-judged", reason="inconclusive: machine stalled"),
        RunAudit(at=6.9, loop_lag_ms={"p50": 0.4}),
        ended(1),
    ]


CHANGE = DrawnChange(
    "rules",
    "Rules.allowed",
    "comparison",
    "reference/admission/rules.py:13",
    "--- reference/admission/rules.py\n+++ reference/admission/rules.py\n@@ -13 +13 @@\n-a < <b>\n+a <= <b>",
)


def drawn_mutants() -> list[MutantPlan]:
    """Three drawn mutants, of which the last is argued to be equivalent."""
    return [
        MutantPlan(f"drawn:7:{number}", "", "Rules.allowed: < becomes <=", excluded=excluded, drawn=CHANGE)
        for number, excluded in ((1, None), (3, None), (4, "equivalent: they are the same"))
    ]


def drawn_run(*statuses: str) -> list[Event]:
    """Drawn mutants, as they are judged in this order; one more was stillborn."""
    planned = drawn_mutants()
    became = [*statuses, *("killed", "survived", "excluded")[len(statuses) :]]
    return [
        started(purpose="mutants", command="holdfast mutants admission --drawn 3 --seed 7"),
        mutants(*planned, stillborn=[Stillborn("drawn:7:2", "it ended with status 1", CHANGE.diff)]),
        *(judged(each, status, drawn=CHANGE) for each, status in zip(planned, became, strict=True)),
        RunAudit(at=6.9, loop_lag_ms={"p50": 0.4}),
        ended(),
    ]
