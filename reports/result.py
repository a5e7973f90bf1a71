"""The words of a result: check, part, requirement row, results.

`Results.to_json()` is `results.json`, described by `results.schema.json`. The renderers of this room take that
document and nothing else, so a report can be made again from the file alone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.reports.text import Json
from holdfast.verdict import Kind, Verdict, exit_code

SCHEMA = 1

UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.ERROR})


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """All ten, in the order of `Verdict`, so that a zero is said and not left to be guessed."""
    seen = Counter(verdicts)
    return {str(verdict): seen[verdict] for verdict in Verdict}


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str
    title: str
    planned: bool
    verdict: Verdict
    kind: Kind | None
    reason: str
    verifies: list[Json]
    attempts: list[Json]
    deciding: Json | None

    @property
    def finals(self) -> list[Json]:
        return [attempt for attempt in self.attempts if attempt["final"]]

    @property
    def duration_s(self) -> float:
        return sum(float(attempt["duration_s"]) for attempt in self.attempts)

    @property
    def longest_s(self) -> float:
        """The longest single attempt; the sum would blame a check for being repeated."""
        return max((float(attempt["duration_s"]) for attempt in self.attempts), default=0.0)

    def finding(self) -> Json | None:
        """What a reader needs to believe the verdict; without any attempt there is nothing to show."""
        if self.deciding is None:
            return None
        return {"check": self.check, "title": self.title, **self.deciding}

    def to_json(self) -> Json:
        last = self.deciding or {}
        return {
            "check": self.check,
            "title": self.title,
            "planned": self.planned,
            "verdict": self.verdict,
            "kind": self.kind,
            "reason": self.reason,
            "verifies": self.verifies,
            "repeats": count_verdicts(Verdict(attempt["verdict"]) for attempt in self.finals),
            "duration_s": self.duration_s,
            "planned_s": last.get("planned_s"),
            "isolation": last.get("isolation", ""),
            "known": last.get("known"),
            "command": last.get("command", ""),
            "attempts": self.attempts,
        }


@dataclass(frozen=True, slots=True)
class Part:
    number: int
    plan: Json
    verdict: Verdict
    reason: str
    checks: list[str]

    def to_json(self) -> Json:
        return {
            "part": self.number,
            "needs": self.plan.get("needs", []),
            "observe": self.plan.get("observe", ""),
            "verdict": self.verdict,
            "reason": self.reason,
            "hook": self.plan.get("hook"),
            "unseen": self.plan.get("unseen", []),
            "checks": self.checks,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement of the catalogue and what the run can say about it."""

    plan: Json
    verdict: Verdict
    kind: Kind | None
    reason: str
    parts: list[Part]
    checks: list[str]
    timings: list[Json]
    finding: Json | None

    @property
    def id(self) -> str:
        return str(self.plan["id"])

    def to_json(self) -> Json:
        said = {key: self.plan.get(key, "") for key in ("id", "spec", "level", "title", "text", "section")}
        return {
            **said,
            "lines": self.plan.get("lines", ""),
            "origin": self.plan.get("origin", ""),
            "violations": self.plan.get("violations", 0),
            "verdict": self.verdict,
            "kind": self.kind,
            "reason": self.reason,
            "parts": [part.to_json() for part in self.parts],
            "checks": self.checks,
            "timings": self.timings,
            "finding": self.finding,
        }


@dataclass(frozen=True, slots=True)
class Results:
    """A whole run: what was announced, what came of it, and whether the two agree."""

    run: Json
    plan: Json
    rows: list[Row]
    checks: list[CheckResult]
    audit: Json
    end: Json | None

    @property
    def exit(self) -> int:
        """The exit code that the rows call for; an interrupted run has not judged everything."""
        code = exit_code(row.verdict for row in self.rows)
        broken_off = self.end is None or bool(self.end.get("interrupted"))
        return 2 if code == 0 and broken_off else code

    @property
    def decided(self) -> int:
        return sum(row.verdict not in UNDECIDED for row in self.rows)

    def reconciliation(self) -> Json:
        planned = [check for check in self.checks if check.planned]
        missing = [check.check for check in planned if not check.finals]
        unexpected = [check.check for check in self.checks if not check.planned and check.attempts]
        notes = self._disagreements()
        return {
            "rows_planned": len(self.rows),
            "rows_decided": self.decided,
            "checks_planned": len(planned),
            "checks_finished": len(planned) - len(missing),
            "missing": missing,
            "unexpected": unexpected,
            "notes": notes,
            "agrees": not (missing or unexpected or notes),
        }

    def _disagreements(self) -> list[str]:
        if self.end is None:
            return ["The run was cut off: its stream has no end."]
        said = self.end.get("exit")
        if said is not None and (said == 0) != (self.exit == 0):
            return [f"The run ended with exit {said}, but its rows call for {self.exit}."]
        return []

    def to_json(self) -> Json:
        return {
            **self._identity(),
            **self._times(),
            "plan": {**self._plan_without_rows(), "reconciliation": self.reconciliation()},
            "summary": self._summary(),
            "audit": self.audit,
            "requirements": [row.to_json() for row in self.rows],
            "checks": [check.to_json() for check in self.checks],
        }

    def _identity(self) -> Json:
        run, end = self.run, self.end or {}
        return {
            "schema": SCHEMA,
            "holdfast": run.get("holdfast", ""),
            "run_id": run.get("run_id", ""),
            "specs": run.get("specs", []),
            "target": run.get("target", {}),
            "profile": run.get("profile", ""),
            "capabilities": run.get("capabilities", []),
            "time_scale": run.get("time_scale", 1),
            "seed": run.get("seed"),
            "launcher": run.get("launcher", ""),
            "repeat": run.get("repeat") or 1,
            "stress": run.get("stress"),
            "command": run.get("command", ""),
            "interrupted": "cut off" if self.end is None else end.get("interrupted"),
            "leftovers": end.get("leftovers", []),
            "versions": {key: run.get(key, "") for key in ("holdfast", "python", "platform")}
            | {"catalogue": run.get("catalogue", {})},
            "timings": run.get("timings", {}),
        }

    def _times(self) -> Json:
        longest = max(self.checks, key=lambda check: check.longest_s, default=None)
        return {
            "started": self.run.get("started", ""),
            "wall_s": (self.end or {}).get("wall_s"),
            "sum_s": round(sum(check.duration_s for check in self.checks), 6),
            "longest_check": longest
            and {
                "check": longest.check,
                "planned_s": (longest.deciding or {}).get("planned_s"),
                "duration_s": longest.longest_s,
            },
            "planned": {
                "wall_s": self.plan.get("planned_wall_s"),
                "sum_s": self.plan.get("planned_sum_s"),
                "longest_check": self.plan.get("longest_check"),
            },
        }

    def _plan_without_rows(self) -> Json:
        counts = {key: self.plan.get(key, 0) for key in ("requirements", "parts", "checks", "overlap", "faults")}
        return counts | {"left_out": self.plan.get("left_out", [])}

    def _summary(self) -> Json:
        said = (self.end or {}).get("exit")
        finals = [attempt for check in self.checks for attempt in check.finals]
        return {
            **count_verdicts(row.verdict for row in self.rows),
            "rows": len(self.rows),
            "checks": count_verdicts(check.verdict for check in self.checks),
            "check_runs": sum(len(check.attempts) for check in self.checks),
            "inconclusive_after_retry": sum(
                attempt["verdict"] == Verdict.INCONCLUSIVE and attempt["attempt"] > 1 for attempt in finals
            ),
            "exit": self.exit if said is None else said,
        }
