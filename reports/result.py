"""The records of a result: check, part, requirement row, whole run.

`Results.to_json()` is `results.json`, described by `results.schema.json`. The renderers of this room take that
document and nothing else, so a report can be made again from the file alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.check.verifies import Claim
from holdfast.reports.blocked import blocked
from holdfast.reports.matrix import KillMatrix
from holdfast.reports.text import Json, as_json
from holdfast.run.cost import least_wall, ratio
from holdfast.run.events import (
    SCHEMA,
    CheckFinished,
    PartPlan,
    PlanMade,
    RowPlan,
    RunAudit,
    RunFinished,
    RunStarted,
    RunWaiting,
)
from holdfast.spec.verdict import UNDECIDED, Kind, Verdict, exit_code

# Fields of an event that have another place in the document than the record made from it.
NOT_OF_AN_ATTEMPT = frozenset({"at", "check", "title", "variant", "verifies"})
NOT_OF_A_ROW = frozenset({"excluded", "parts", "known"})
NOT_OF_AN_AUDIT = frozenset({"at"})


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Returns the count of each verdict in the order of `Verdict`, zeros included."""
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
    verifies: list[Claim]
    attempts: list[CheckFinished]
    deciding: CheckFinished | None

    def on(self, row: RowPlan) -> Verdict | None:
        """Returns what it says about a row that it verifies; None for a walk that came to another one, or to none.

        Any other check that ended with a finding about another row has not judged this one.
        """
        decided = self.deciding.decided if self.deciding else None
        if decided is None:
            return self.verdict
        if row.id not in decided:
            return None if self.walks else Verdict.INCONCLUSIVE
        # A walk may break a MUST and a SHOULD with one step; for the SHOULD that is a warning.
        return Verdict.WARN if self.verdict is Verdict.FAIL and row.level != "MUST" else self.verdict

    @property
    def walks(self) -> bool:
        """Whether it performs walks, which decide some of the rows that they verify, or none."""
        last = self.deciding
        return last is not None and last.decided is not None and (last.walk is not None or not last.decided)

    def reason_on(self, row: RowPlan) -> str:
        """Returns the reason for what it says about a row."""
        decided = self.deciding.decided if self.deciding else None
        if decided is None or self.walks or row.id in decided:
            return self.reason
        return f"its check ended with a finding about {', '.join(decided)}: {self.reason}"

    @property
    def homeless(self) -> bool:
        """Whether its verdict is about no row at all, so that no row shows it."""
        return self.deciding is not None and self.deciding.decided == []

    @property
    def unsafe(self) -> bool:
        return self.deciding is not None and self.deciding.unsafe

    @property
    def blocked_by(self) -> str | None:
        """What kept the check from judging, where that is its verdict."""
        if self.deciding is None or self.verdict not in {Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVABLE}:
            return None
        return self.deciding.blocked_by

    @property
    def finals(self) -> list[CheckFinished]:
        return [attempt for attempt in self.attempts if attempt.final]

    @property
    def duration_s(self) -> float:
        return sum(attempt.duration_s for attempt in self.attempts)

    @property
    def longest_s(self) -> float:
        """The longest single attempt; their sum would grow with --repeat."""
        return max((attempt.duration_s for attempt in self.attempts), default=0.0)

    def finding(self) -> Json | None:
        """Returns the evidence for the verdict; None without any attempt."""
        return finding_of(self.deciding, self.title) if self.deciding else None

    def to_json(self) -> Json:
        last = self.deciding or CheckFinished()
        return {
            "check": self.check,
            "title": self.title,
            "planned": self.planned,
            "verdict": self.verdict,
            "kind": self.kind,
            "reason": self.reason,
            "blocked_by": self.blocked_by,
            "verifies": as_json(self.verifies),
            "repeats": count_verdicts(Verdict(attempt.verdict) for attempt in self.finals),
            "duration_s": self.duration_s,
            "planned_s": last.planned_s,
            "isolation": last.isolation,
            "known": as_json(last.known),
            "command": last.command,
            "attempts": [as_json(attempt, NOT_OF_AN_ATTEMPT) for attempt in self.attempts],
        }


def finding_of(attempt: CheckFinished, title: str) -> Json:
    """Returns the attempt as a finding, which `render_finding` takes."""
    return {"check": attempt.check, "title": title, **as_json(attempt, NOT_OF_AN_ATTEMPT)}


def timings_of(check: CheckResult) -> list[Json]:
    """Returns the judged timings of every repeat, each with the check and the repeat that it comes from."""
    return [
        {**as_json(timing), "check": check.check, "repeat": attempt.repeat}
        for attempt in check.finals
        for timing in attempt.timings
    ]


@dataclass(frozen=True, slots=True)
class Part:
    plan: PartPlan
    verdict: Verdict
    reason: str
    checks: list[str]

    def to_json(self) -> Json:
        return {
            "part": self.plan.part,
            "needs": self.plan.needs,
            "observe": self.plan.observe,
            "verdict": self.verdict,
            "reason": self.reason,
            "hook": self.plan.hook,
            "unseen": self.plan.unseen,
            "checks": self.checks,
            "left_out": as_json(self.plan.left_out),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement of the catalogue and what the run can say about it."""

    plan: RowPlan
    verdict: Verdict
    kind: Kind | None
    reason: str
    parts: list[Part]
    checks: list[str]
    timings: list[Json]
    finding: Json | None
    blocked_by: str | None = None

    def to_json(self) -> Json:
        return {
            **as_json(self.plan, NOT_OF_A_ROW),
            "verdict": self.verdict,
            "kind": self.kind,
            "reason": self.reason,
            "blocked_by": self.blocked_by,
            "parts": [part.to_json() for part in self.parts],
            "checks": self.checks,
            "timings": self.timings,
            "finding": self.finding,
        }


@dataclass(frozen=True, slots=True)
class Results:
    """A whole run: what was announced, what came of it, and whether the two agree."""

    run: RunStarted
    plan: PlanMade
    rows: list[Row]
    checks: list[CheckResult]
    audit: RunAudit | None
    end: RunFinished | None
    matrix: KillMatrix | None = None
    waits: list[RunWaiting] = field(default_factory=list)

    @property
    def exit(self) -> int:
        """The exit code that the rows, or the mutants, call for; an interrupted run has not judged everything."""
        code = self.matrix.exit(self.plan) if self.matrix else exit_code(self._verdicts())
        broken_off = self.end is None or bool(self.end.interrupted)
        return 2 if code == 0 and broken_off else code

    def _verdicts(self) -> Iterator[Verdict]:
        """Yields the verdicts of the rows, and of walks that came to no row what must not be lost.

        In a run of the suite every row has checks of its own, so a walk that could not judge takes nothing from it.
        """
        yield from (row.verdict for row in self.rows)
        lost = {Verdict.ERROR, Verdict.FAIL}
        if self.run.purpose == "walks":
            lost.add(Verdict.INCONCLUSIVE)
        yield from (check.verdict for check in self.checks if check.homeless and check.verdict in lost)

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
        said = self.end.exit
        if said is not None and (said == 0) != (self.exit == 0):
            what = "mutants" if self.matrix else "rows"
            return [f"The run ended with exit {said}, but its {what} call for {self.exit}."]
        return []

    def to_json(self) -> Json:
        return {
            **self._identity(),
            **self._times(),
            "plan": {**self._plan_without_rows(), "reconciliation": self.reconciliation()},
            "summary": self._summary(),
            "audit": as_json(self.audit, NOT_OF_AN_AUDIT) if self.audit else {},
            "blocked": blocked(self.rows, self.checks),
            "requirements": [row.to_json() for row in self.rows],
            "checks": [check.to_json() for check in self.checks],
            "mutants": self.matrix.rows(self.plan) if self.matrix else [],
        }

    def _identity(self) -> Json:
        run, end = self.run, self.end or RunFinished()
        return {
            "schema": SCHEMA,
            "purpose": run.purpose,
            "holdfast": run.holdfast,
            "run_id": run.run_id,
            "specs": run.specs,
            "target": as_json(run.target),
            "profile": run.profile,
            "capabilities": run.capabilities,
            "time_scale": run.time_scale,
            "seed": run.seed,
            "launcher": run.launcher,
            "repeat": run.repeat or 1,
            "stress": run.stress,
            "command": run.command,
            "interrupted": "cut off" if self.end is None else end.interrupted,
            "leftovers": end.leftovers,
            "versions": {
                "holdfast": run.holdfast,
                "python": run.python,
                "platform": run.platform,
                "catalogue": run.catalogue,
            },
            "timings": as_json(run.timings),
        }

    def _times(self) -> Json:
        return {
            "started": self.run.started,
            **self._cost(self._times_of_mutants(self.matrix) if self.matrix else self._times_of_checks()),
            "planned": {
                "wall_s": self.plan.planned_wall_s,
                "sum_s": self.plan.planned_sum_s,
                "longest_check": as_json(self.plan.longest_check),
            },
            "waits": as_json(self.waits),
        }

    def _cost(self, times: Json) -> Json:
        """Returns the times of checks with what the run took, and how close that is to the least it could take."""
        end = self.end or RunFinished()
        least = least_wall((times["longest_check"] or {}).get("duration_s", 0.0), end.cpu_s, end.cores)
        return {
            "wall_s": end.wall_s,
            "cpu_s": end.cpu_s,
            "cores": end.cores,
            "least_wall_s": least,
            "wall_ratio": ratio(end.wall_s, least),
            **times,
        }

    def _times_of_checks(self) -> Json:
        longest = max(self.checks, key=lambda check: check.longest_s, default=None)
        return {
            "sum_s": round(sum(check.duration_s for check in self.checks), 6),
            "longest_check": longest
            and {
                "check": longest.check,
                "planned_s": longest.deciding.planned_s if longest.deciding else None,
                "duration_s": longest.longest_s,
            },
        }

    def _times_of_mutants(self, matrix: KillMatrix) -> Json:
        longest = matrix.longest
        return {
            "sum_s": round(sum(matrix.spent_s.values()), 6),
            "longest_check": {
                "check": longest.check,
                "planned_s": longest.planned_s,
                "duration_s": longest.duration_s,
            }
            if longest.check
            else None,
        }

    def _plan_without_rows(self) -> Json:
        plan = self.plan
        return {
            "requirements": plan.requirements,
            "parts": plan.parts,
            "checks": plan.checks,
            "overlap": plan.overlap,
            "faults": plan.faults,
            "alone": as_json(plan.alone),
            "left_out": as_json(plan.left_out),
            "narrowed": plan.narrowed,
        }

    def _summary(self) -> Json:
        said = self.end.exit if self.end else None
        finals = [attempt for check in self.checks for attempt in check.finals]
        attempts = sum(len(check.attempts) for check in self.checks)
        return {
            **count_verdicts(row.verdict for row in self.rows),
            "rows": len(self.rows),
            "checks": count_verdicts(check.verdict for check in self.checks),
            "check_runs": self.matrix.attempts if self.matrix else attempts,
            "inconclusive_after_retry": sum(
                attempt.verdict == Verdict.INCONCLUSIVE and attempt.attempt > 1 for attempt in finals
            ),
            "mutants": self.matrix.summary(self.plan) if self.matrix else None,
            "narrowed": self.plan.narrowed,
            "exit": self.exit if said is None else said,
        }
