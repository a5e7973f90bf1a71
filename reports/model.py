"""Folds the events of a run into its results.

A run appends one event after the other and may be killed at any moment. Nothing here waits for the end: what was
planned and never finished is `inconclusive`, so a stream cut anywhere still gives an honest answer.
"""

from collections.abc import Iterable, Iterator

from holdfast.check.verifies import Claim
from holdfast.reports.matrix import ENDED, STATUSES, KillMatrix
from holdfast.reports.result import CheckResult, Part, Results, Row, timings_of
from holdfast.reports.text import clean, count
from holdfast.run.events import (
    SCHEMA,
    CheckFinished,
    CheckStarted,
    Event,
    MutantJudged,
    PartPlan,
    PlanMade,
    RowPlan,
    RunAudit,
    RunFinished,
    RunStarted,
    RunWaiting,
)
from holdfast.spec.verdict import Kind, Verdict, fold, fold_parts

FIXED = "listed under [known_failures], but it passes now: remove the entry"

NOT_REACHED = "no step of a walk came to it"

_STATUS = {
    "not-observable": Verdict.NOT_OBSERVABLE,
    "not-applicable": Verdict.NOT_APPLICABLE,
    "excluded": Verdict.NOT_APPLICABLE,
}


_GAPS = frozenset({Verdict.NOT_OBSERVABLE, Verdict.NOT_APPLICABLE, Verdict.PARTIAL})


class StreamError(ValueError):
    """Raised for a stream that no run of this version can have written."""


def fold_events(events: Iterable[Event]) -> Results:
    stream = Fold()
    for event in events:
        stream.add(event)
    return stream.results()


def sentence_of(check: str) -> str:
    """Returns the name of a check as a sentence, for a check whose title is not known."""
    name, bracket, parameters = check.rpartition("::")[2].partition("[")
    return name.removeprefix("test_").replace("_", " ") + (f" [{parameters}" if bracket else "")


class Fold:
    """The results so far; `add` takes one event, `results` may be asked at any time."""

    def __init__(self) -> None:
        self.run = RunStarted()
        self.plan = PlanMade()
        self._audit: RunAudit | None = None
        self._end: RunFinished | None = None
        self._attempts: dict[str, list[CheckFinished]] = {}
        self._started: dict[str, float] = {}
        self._matrix = KillMatrix()
        self._waits: list[RunWaiting] = []

    def add(self, event: Event) -> Event:
        """Takes one event and returns it with the texts of the target made visible.

        An event that says nothing about results, such as what a check waits for, is left alone.
        """
        said = clean(event)
        match said:
            case RunStarted():
                self._start(said)
            case PlanMade():
                self.plan = said
            case RunWaiting():
                self._waits.append(said)
            case CheckStarted(variant=""):
                self._started.setdefault(said.check, said.at)
            case CheckFinished():
                self._finish(said)
            case MutantJudged():
                self._judge(said)
            case RunAudit():
                self._audit = said
            case RunFinished():
                self._end = said
        return said

    @property
    def of_mutants(self) -> bool:
        """Whether the run judges mutants; then its checks say nothing about a target."""
        return self.run.purpose == "mutants"

    def _start(self, said: RunStarted) -> None:
        if said.schema != SCHEMA:
            raise StreamError(
                f"This run was written with schema {said.schema}, but this Holdfast reads schema {SCHEMA}. "
                f"Use Holdfast {said.holdfast or 'of the run'} to report it."
            )
        self.run = said
        self._waits.clear()  # what was shown before is no part of the run

    def _finish(self, said: CheckFinished) -> None:
        if said.verdict not in set(Verdict):
            raise StreamError(f"{said.check} has the verdict {said.verdict!r}, which is none of {', '.join(Verdict)}.")
        if self.of_mutants:
            self._matrix.add(said)
        elif not said.variant:
            self._attempts.setdefault(said.check, []).append(said)

    def _judge(self, said: MutantJudged) -> None:
        if said.status not in STATUSES:
            raise StreamError(f"{said.id} has the status {said.status!r}, which is none of {', '.join(STATUSES)}.")
        self._matrix.judged[said.id] = said

    def results(self) -> Results:
        if self.of_mutants:
            # Only what a check said about a clean copy has a place among the checks, and only a false alarm is news.
            alarms = [_result(check, found, [], "") for check, found in self._matrix.alarms.items()]
            return Results(self.run, self.plan, [], alarms, self._audit, self._end, self._matrix)
        planned = self._planned_checks()
        ids = dict.fromkeys([*planned, *self._attempts, *self._left_out_checks()])
        checks = {check: self._check(check, planned.get(check)) for check in ids}
        rows = [row for plan in self.plan.rows if (row := self._row(plan, checks))]
        return Results(self.run, self.plan, rows, list(checks.values()), self._audit, self._end, waits=self._waits)

    def _planned_checks(self) -> dict[str, list[Claim]]:
        """Returns each check that the plan promised, with the parts that it is promised for."""
        planned: dict[str, list[Claim]] = {}
        for row in self.plan.rows:
            for part in row.parts:
                if self._status(row, part)[0] is None and _inside(part):
                    for check in (check for check in part.checks if check not in self._left_out):
                        planned.setdefault(check, []).append(Claim(row.id, part.part))
        return planned

    def _left_out_checks(self) -> list[str]:
        """Returns the checks that the plan names and the budget leaves out: their parts must not read as green."""
        named = {check for row in self.plan.rows for part in row.parts for check in part.checks}
        return [check for check in self._left_out if check in named]

    @property
    def _left_out(self) -> dict[str, str]:
        """The rows and checks that the plan leaves out, and why."""
        return {left.id: f"left out: {left.reason}" for left in self.plan.left_out}

    def _status(self, row: RowPlan, part: PartPlan) -> tuple[Verdict | None, str]:
        """Returns the verdict that the plan itself gives a part, and why; None for a part that checks decide."""
        if row.excluded:
            return Verdict.NOT_APPLICABLE, row.excluded
        if why := self._left_out.get(row.id):
            return Verdict.INCONCLUSIVE, why
        return _STATUS.get(part.status), part.reason or ""

    def _check(self, check: str, planned: list[Claim] | None) -> CheckResult:
        attempts = self._attempts.get(check, [])
        unfinished = self._unfinished(check, attempts, planned is not None)
        return _result(check, attempts, planned, unfinished)

    def _unfinished(self, check: str, attempts: list[CheckFinished], planned: bool) -> str:
        """Returns why some repeats of a check are missing; empty when none is."""
        finals = [attempt for attempt in attempts if attempt.final]
        if not finals and check in self._left_out:
            return self._left_out[check]
        due = (self.run.repeat or 1) if planned else 1
        done = len({attempt.repeat for attempt in finals})
        if done >= due:
            return ""
        if due > 1:
            return f"{ENDED} (after {done} of {due} repeats)"
        if check in self._started:
            return f"{ENDED} (the check had started at {self._started[check]:.1f} s)"
        return ENDED

    def _row(self, plan: RowPlan, checks: dict[str, CheckResult]) -> Row | None:
        parts = [self._part(plan, part, checks) for part in plan.parts if _inside(part)]
        if self.run.purpose == "walks":  # it answers for the rows that a walk came to, and for no others
            parts = [part for part in parts if part.reason != NOT_REACHED]
        if not parts:
            return None
        verdict = fold_parts(parts[0].verdict, [part.verdict for part in parts[1:]])
        if verdict is Verdict.PASS and plan.known:
            verdict = Verdict.FIXED
        mine = [checks[check] for check in dict.fromkeys(check for part in parts for check in part.checks)]
        worst = _headline([check for check in mine if check.on(plan) is verdict])
        return Row(
            plan=plan,
            verdict=verdict,
            kind=_kind([check for check in mine if check.on(plan)]) if verdict is Verdict.FAIL else None,
            reason=FIXED if verdict is Verdict.FIXED else _row_reason(plan, verdict, parts, worst),
            parts=parts,
            checks=[check.check for check in mine],
            timings=[timing for check in mine for timing in timings_of(check)],
            finding=worst.finding() if worst and verdict is not Verdict.PASS else None,
            blocked_by=_blocked_by(verdict, parts, worst),
        )

    def _part(self, row: RowPlan, part: PartPlan, checks: dict[str, CheckResult]) -> Part:
        """Folds the plan's own status with the verdicts of the checks: it may hide a `pass`, never a `fail`."""
        place = Claim(row.id, part.part)
        status, why = self._status(row, part)
        mine = [check for check in checks.values() if place in check.verifies or _promised(check, part, status)]
        said = {check.check: verdict for check in mine if (verdict := check.on(row)) is not None}
        if mine and not said and status is None and not part.left_out:
            return Part(part, Verdict.INCONCLUSIVE, NOT_REACHED, [check.check for check in mine])
        verdict = _fold_checks(_without_lifting(mine, said), status, part)
        if verdict is Verdict.PASS and part.known:
            verdict = Verdict.FIXED
        worst = _headline([check for check in mine if said.get(check.check) is verdict])
        reason = why if verdict is status else worst.reason_on(row) if worst else ""
        if not mine and status is None:
            reason = "no check for this part"
        if verdict is Verdict.PARTIAL:
            reason = "; ".join(_gaps(part, mine))
        if verdict is Verdict.FIXED:
            reason = FIXED
        return Part(part, verdict, reason, [check.check for check in mine])


def _fold_checks(verdicts: list[Verdict], status: Verdict | None, part: PartPlan) -> Verdict:
    """Returns the verdict of a part; `partial` where what was looked at held, and some of it was not looked at."""
    if status is None and not verdicts and part.left_out:
        return Verdict.PARTIAL
    applying = _that_apply(verdicts)
    if Verdict.PASS in applying and (part.left_out or Verdict.NOT_OBSERVABLE in applying):
        applying = [Verdict.PARTIAL, *(each for each in applying if each is not Verdict.NOT_OBSERVABLE)]
    return fold([*applying, status] if status else applying)


def _without_lifting(checks: list[CheckResult], said: dict[str, Verdict]) -> list[Verdict]:
    """Returns what was said, without the passes of walks where a check of the part's own has spoken.

    A walk that held saw some of what the part demands, so it does not make up for what a check could not see.
    """
    own = [said[check.check] for check in checks if check.check in said and not check.walks]
    by_walks = [said[check.check] for check in checks if check.check in said and check.walks]
    return [*own, *(verdict for verdict in by_walks if verdict is not Verdict.PASS)] if own else by_walks


def _gaps(part: PartPlan, checks: list[CheckResult]) -> Iterator[str]:
    """Yields what of a part was not looked at, and why."""
    whole = len(checks) + len(part.left_out)
    for reason in dict.fromkeys(left.reason for left in part.left_out):
        names = [_name(left.id) for left in part.left_out if left.reason == reason]
        yield f"{len(names)} of {count(whole, 'check')} left out ({reason}): {', '.join(names)}"
    for check in checks:
        if check.verdict is Verdict.NOT_OBSERVABLE:
            yield f"{_name(check.check)}: {check.reason}"


def _name(check: str) -> str:
    return check.rpartition("::")[2]


def _headline(checks: list[CheckResult]) -> CheckResult | None:
    """Returns the check whose finding says most: an unsafe one, then one that the target breaks, then its own.

    A check that verifies this row alone speaks of it, one that was blocked speaks of something else.
    """
    kinds = [*Kind, None]
    return min(
        checks,
        key=lambda check: (not check.unsafe, kinds.index(check.kind), bool(check.blocked_by), len(check.verifies)),
        default=None,
    )


def _blocked_by(verdict: Verdict, parts: list[Part], worst: CheckResult | None) -> str | None:
    """Returns what kept a row from being judged, if something did that may keep others from it too."""
    if verdict not in {Verdict.INCONCLUSIVE, Verdict.NOT_OBSERVABLE}:
        return None
    if worst:
        return worst.blocked_by
    hooks = [part.plan.hook for part in parts if part.verdict is verdict and part.plan.hook]
    return f"no {hooks[0]}" if hooks else None


def _that_apply(verdicts: list[Verdict]) -> list[Verdict]:
    """Leaves out `not-applicable`, unless there is nothing else: another check of the part decides."""
    return [verdict for verdict in verdicts if verdict is not Verdict.NOT_APPLICABLE] or verdicts


def _inside(part: PartPlan) -> bool:
    """Returns whether the part belongs to the profile; others are left out of the results."""
    return part.status != "outside-profile"


def _promised(check: CheckResult, part: PartPlan, status: Verdict | None) -> bool:
    return status is None and check.check in part.checks


def _result(check: str, attempts: list[CheckFinished], planned: list[Claim] | None, unfinished: str) -> CheckResult:
    """Returns the result of one check from its attempts; `unfinished` says why some of them are missing."""
    finals = [attempt for attempt in attempts if attempt.final]
    verdicts = [Verdict(attempt.verdict) for attempt in finals]
    verdict = fold([*verdicts, Verdict.INCONCLUSIVE] if unfinished else verdicts)
    kinds = [*Kind, None]
    deciding = min(
        (attempt for attempt in finals if attempt.verdict == verdict),
        key=lambda attempt: (not attempt.unsafe, kinds.index(attempt.kind if attempt.kind in kinds else None)),
        default=None,
    )
    last = attempts[-1] if attempts else CheckFinished()
    return CheckResult(
        check=check,
        title=last.title or sentence_of(check),
        planned=planned is not None,
        verdict=verdict,
        kind=_kind(finals) if verdict is Verdict.FAIL else None,
        reason=deciding.reason if deciding else unfinished,
        verifies=last.verifies or planned or [],
        attempts=attempts,
        deciding=deciding or (last if attempts else None),
    )


def _kind(failures: Iterable[CheckFinished | CheckResult]) -> Kind | None:
    """Returns `violates` if any failure is one, because it says more about the target than `absent`."""
    kinds = {failure.kind for failure in failures if failure.verdict == Verdict.FAIL}
    return next((kind for kind in Kind if kind in kinds), None)


def _row_reason(plan: RowPlan, verdict: Verdict, parts: list[Part], worst: CheckResult | None) -> str:
    if verdict is Verdict.PARTIAL:
        return "; ".join(_unlooked(part) for part in parts if part.verdict in _GAPS)
    if worst and worst.reason:
        return worst.reason_on(plan)
    return next((part.reason for part in parts if part.verdict is verdict), "")


def _unlooked(part: Part) -> str:
    how = "not looked at in full" if part.verdict is Verdict.PARTIAL and part.checks else "not looked at"
    return f"part {part.plan.part} {how}: {part.reason}"
