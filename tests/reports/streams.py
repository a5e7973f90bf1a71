"""Hand-made event streams for the tests of `reports/`."""

from collections.abc import Sequence
from typing import Any

Event = dict[str, Any]

HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m ]]> \x00 \ud800 [bold]loud[/bold] </script> \u202e & \"'"

RATE = "conformance/admission/test_rate.py::test_a_burst_across_a_window_border_is_locked"
STATE = "conformance/admission/test_state.py::test_a_second_node_sees_the_same_queue"
DRAIN = "conformance/admission/test_drain.py::test_a_drain_ends_in_time[60]"


def started(**more: Any) -> Event:
    return {
        "event": "run.started",
        "at": 0.0,
        "schema": 1,
        "holdfast": "0.1.0",
        "run_id": "r-1",
        "specs": ["admission"],
        "catalogue": {"admission": "1.0"},
        "target": {"name": "mine", "version": "2.3", "spec": "admission", "file": "mine.toml"},
        "profile": "control",
        "capabilities": ["wire", "redis"],
        "time_scale": 0.2,
        "seed": 7,
        "launcher": "fork",
        "repeat": 1,
        "stress": 0,
        "python": "3.11.7",
        "platform": "linux",
        "started": "2026-11-16T07:00:00+00:00",
        "command": "holdfast run admission --target mine.toml",
        "timings": {
            "rate_window": {"kind": "seed", "value_s": 60.0, "scaled_s": 12.0, "source": "seed §3"},
        },
        **more,
    }


def part(number: int = 1, checks: Sequence[str] = (), **more: Any) -> Event:
    return {
        "part": number,
        "needs": ["wire"],
        "observe": "Five failures around a border, then one more.",
        "status": "planned",
        "reason": "",
        "hook": None,
        "unseen": [],
        "checks": list(checks),
        **more,
    }


def row(requirement: str, *parts: Event, **more: Any) -> Event:
    return {
        "id": requirement,
        "spec": "admission",
        "level": "MUST",
        "title": "The 60 s window truly rolls",
        "text": "Every failure counts for exactly 60 s and leaves the window on its own.",
        "section": "seed §3 Rate Limiting",
        "lines": "30-31",
        "origin": "seed",
        "violations": 2,
        "excluded": None,
        "parts": list(parts),
        **more,
    }


def plan(*rows: Event, **more: Any) -> Event:
    parts = [part for row in rows for part in row["parts"]]
    checks = {check for part in parts for check in part["checks"]}
    return {
        "event": "plan",
        "at": 0.1,
        "requirements": len(rows),
        "parts": len(parts),
        "checks": len(checks),
        "overlap": 24,
        "faults": 0,
        "planned_wall_s": 20.0,
        "longest_check": {"check": RATE, "planned_s": 12.0},
        "planned_sum_s": 30.0,
        "left_out": [],
        "rows": list(rows),
        **more,
    }


def begun(check: str, **more: Any) -> Event:
    return {"event": "check.started", "at": 0.2, "check": check, "attempt": 1, "repeat": 1, **more}


def finished(check: str, verdict: str = "pass", *verifies: tuple[str, int], **more: Any) -> Event:
    return {
        "event": "check.finished",
        "at": 6.3,
        "check": check,
        "title": "a burst across a window border is locked",
        "attempt": 1,
        "repeat": 1,
        "final": True,
        "verdict": verdict,
        "kind": "violates" if verdict == "fail" else None,
        "reason": "",
        "verifies": [{"id": requirement, "part": number} for requirement, number in verifies],
        "started_s": 0.2,
        "duration_s": 6.1,
        "planned_s": 5.0,
        "isolation": "shared",
        "expected": [],
        "seen": None,
        "transcript": [],
        "transcript_dropped": 0,
        "timings": [],
        "warnings": [],
        "steps": [],
        "command": "holdfast run admission --only AD-RATE-03 --target mine.toml",
        "known": None,
        **more,
    }


def ended(code: int = 0, **more: Any) -> Event:
    return {
        "event": "run.finished",
        "at": 7.0,
        "wall_s": 7.0,
        "exit": code,
        "interrupted": None,
        "leftovers": [],
        **more,
    }


TIMING = {
    "name": "rate_window",
    "source": "seed §3 (L30-31)",
    "kind": "seed",
    "budget_s": 12.0,
    "floor_s": 0.25,
    "tolerance_s": 0.4,
    "observed_s": [11.9, 11.95],
    "margin": 0.03,
    "verdict": "holds",
    "note": "",
}

EVIDENCE: Event = {
    "expected": ["429 RATE_LIMITED on the 6th attempt (5 failures within 6.1 s)", "503 during an outage"],
    "seen": "200 success",
    "transcript": [
        {"t": 0.0, "dir": "→", "text": "POST /instances/i1/connect  clientBuild=stale"},
        {"t": 3.1, "dir": "←", "text": "200 failed VERSION_MISMATCH  remaining 4"},
        {"t": 80.0, "dir": "!", "text": "link redis cut", "detail": {"bytes": 312}},
        {"t": 6087.4, "dir": "→", "text": "POST /instances/i1/connect  clientBuild=dev-build"},
        {"t": 6090.0, "dir": "←", "text": "200 success"},
    ],
    "timings": [TIMING | {"observed_s": [13.1, 13.2], "margin": -0.09, "verdict": "missed"}],
    "steps": [{"name": "three failures", "start_ms": 0.0, "stop_ms": 30.5, "status": "pass"}],
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
        {
            "event": "run.audit",
            "at": 6.9,
            "loop_lag_ms": {"p50": 0.4, "p99": 18.25, "max": 41.0},
            "stalls": [{"callback": "parse", "ms": 61.0}],
            "cpu_pressure_avg10": 3.5,
        },
        ended(1),
    ]


def hostile_run() -> list[Event]:
    """A target whose every answer tries to break the page, the file or the terminal that shows it."""
    return [
        started(target={"name": HOSTILE, "version": HOSTILE, "spec": "admission", "file": "mine.toml"}),
        plan(row("AD-RATE-03", part(1, [RATE], hook=HOSTILE, unseen=[HOSTILE]), title=HOSTILE, text=HOSTILE)),
        finished(
            RATE,
            "fail",
            ("AD-RATE-03", 1),
            reason=HOSTILE,
            title=HOSTILE,
            expected=[HOSTILE],
            seen=HOSTILE,
            transcript=[{"t": 1.0, "dir": "←", "text": HOSTILE, "detail": {HOSTILE: HOSTILE}}],
            warnings=[HOSTILE],
            steps=[{"name": HOSTILE, "start_ms": 0, "stop_ms": 1, "status": "fail"}],
            timings=[TIMING | {"note": HOSTILE, "name": HOSTILE, "margin": float("nan")}],
            command=HOSTILE,
            known={"reason": HOSTILE, "link": "javascript:alert(1)", "expires": "2027-01-01"},
        ),
        ended(1),
    ]
