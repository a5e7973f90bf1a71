"""The kill matrix of a mutant run: what became of each mutant, and which checks cannot be trusted.

A mutant run writes the same stream as any other. Its checks run against mutants and, in between, against clean copies
of the same server. A check that fails on a clean copy has raised a false alarm: it proves nothing about a mutant
either, so it turns the run red as a mutant that survived does.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from holdfast.reports.text import Json, as_json
from holdfast.run.events import CheckFinished, MutantJudged, MutantPlan, MutantStatus, PlanMade
from holdfast.spec.verdict import Verdict

ALARMS = frozenset({Verdict.FAIL, Verdict.WARN})
STATUSES: tuple[MutantStatus, ...] = get_args(MutantStatus)
ENDED = "run ended before"
GOAL = 0.9
"""The share of the drawn mutants that are not equivalent which a suite has to kill."""
NOT_OF_A_MUTANT = frozenset({"at"})


def is_alarm(event: CheckFinished) -> bool:
    """Returns whether the check says that something is wrong with the server it looked at."""
    return event.final and event.verdict in ALARMS


@dataclass(slots=True)
class KillMatrix:
    """The matrix so far. `runs` and `spent_s` count by variant; the empty variant is the clean copies."""

    judged: dict[str, MutantJudged] = field(default_factory=dict)
    alarms: dict[str, list[CheckFinished]] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    spent_s: dict[str, float] = field(default_factory=dict)
    longest: CheckFinished = field(default_factory=CheckFinished)

    def add(self, event: CheckFinished) -> None:
        variant = event.variant
        self.attempts += 1
        self.runs[variant] = self.runs.get(variant, 0) + event.final
        self.spent_s[variant] = self.spent_s.get(variant, 0.0) + event.duration_s
        self.longest = max(self.longest, event, key=lambda check: check.duration_s)
        if not variant and is_alarm(event):
            self.alarms.setdefault(event.check, []).append(event)

    def mutants(self, plan: PlanMade) -> list[MutantJudged]:
        """Returns every mutant of the plan, in its order, then those that were judged without being planned."""
        planned = {each.id: self.judged.get(each.id) or _not_judged(each) for each in plan.mutants}
        return list((planned | self.judged).values())

    def exit(self, plan: PlanMade) -> int:
        """Returns 1 if a mutant survived or a check raised a false alarm, 2 if a mutant is not judged, else 0.

        Drawn mutants are judged by their rate: 1 if it is below the goal, 2 if there is none, else 0. A check that
        raised a false alarm has killed none of them.
        """
        mutants = self.mutants(plan)
        statuses = {mutant.status for mutant in mutants}
        if drawn := _drawn(mutants, plan):
            undecided = drawn["rate"] is None or "not-judged" in statuses
            return 2 if undecided else int(drawn["rate"] < GOAL)
        if "survived" in statuses or self.alarms:
            return 1
        return 2 if not statuses or "not-judged" in statuses else 0

    def rows(self, plan: PlanMade) -> list[Json]:
        """Returns `mutants` of the results document."""
        return [
            {**as_json(mutant, NOT_OF_A_MUTANT), "duration_s": round(self.spent_s.get(mutant.id, 0.0), 6)}
            for mutant in self.mutants(plan)
        ]

    def summary(self, plan: PlanMade) -> Json:
        """Returns `summary.mutants` of the results document."""
        mutants = self.mutants(plan)
        return {
            **count_statuses(mutant.status for mutant in mutants),
            "mutants": len(mutants),
            "clean_runs": self.runs.get("", 0),
            "false_alarms": {check: alarms[-1].reason for check, alarms in self.alarms.items()},
            "violations": plan.violations,
            "covered_violations": plan.covered_violations,
            "drawn": _drawn(mutants, plan),
        }


def count_statuses(statuses: Iterable[str]) -> dict[str, int]:
    seen = list(statuses)
    return {status: seen.count(status) for status in STATUSES}


def _drawn(mutants: list[MutantJudged], plan: PlanMade) -> Json | None:
    """Returns the detection power of a run of drawn mutants, None for any other run."""
    statuses = [mutant.status for mutant in mutants if mutant.drawn]
    if not statuses and not plan.stillborn:
        return None
    killed, judged = statuses.count("killed"), statuses.count("killed") + statuses.count("survived")
    return {
        "rate": round(killed / judged, 4) if judged else None,
        "goal": GOAL,
        "judged": judged,
        "killed": killed,
        "equivalent": statuses.count("excluded"),
        "stillborn": [as_json(each) for each in plan.stillborn],
    }


def _not_judged(plan: MutantPlan) -> MutantJudged:
    return MutantJudged(
        id=plan.id,
        requirement=plan.requirement,
        violation=plan.violation,
        declared=plan.declared,
        status="excluded" if plan.excluded else "not-judged",
        reason=plan.excluded or ENDED,
        drawn=plan.drawn,
    )
