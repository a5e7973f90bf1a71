"""Events in, results out.

A run appends one event after the other and may be killed at any moment. Nothing here waits for the end: what was
planned and never finished is `inconclusive`, so a stream cut anywhere still gives an honest answer.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.reports.result import SCHEMA, CheckResult, Part, Results, Row
from holdfast.reports.text import Json, clean
from holdfast.verdict import Kind, Verdict, fold, fold_parts

ENDED = "run ended before"
FIXED = "listed under [known_failures], but it passes now: remove the entry"

_STATUS = {
    "not-observable": Verdict.NOT_OBSERVABLE,
    "not-applicable": Verdict.NOT_APPLICABLE,
    "excluded": Verdict.NOT_APPLICABLE,
}

_ATTEMPT: Json = {
    "attempt": 1,
    "repeat": 1,
    "final": True,
    "verdict": "",
    "kind": None,
    "reason": "",
    "started_s": 0.0,
    "duration_s": 0.0,
    "planned_s": None,
    "isolation": "",
    "expected": [],
    "seen": None,
    "transcript": [],
    "transcript_dropped": 0,
    "timings": [],
    "warnings": [],
    "faults": [],
    "steps": [],
    "command": "",
    "known": None,
}


_TIMING: Json = {
    "name": "",
    "source": "",
    "kind": "",
    "budget_s": None,
    "floor_s": None,
    "tolerance_s": None,
    "observed_s": None,
    "margin": None,
    "verdict": None,
    "note": "",
}
_ENTRY: Json = {"t": 0.0, "dir": "·", "text": "", "detail": None}
_STEP: Json = {"name": "", "start_ms": 0.0, "stop_ms": 0.0, "status": None}
_LISTS = {"timings": _TIMING, "transcript": _ENTRY, "steps": _STEP}


class StreamError(ValueError):
    """The stream says something that no Holdfast run writes."""


def fold_events(events: Iterable[Mapping[str, Any]]) -> Results:
    stream = Fold()
    for event in events:
        stream.add(event)
    return stream.results()


def sentence_of(check: str) -> str:
    """The name of a check as a sentence, for a check that could not tell its title."""
    name, bracket, parameters = check.rpartition("::")[2].partition("[")
    return name.removeprefix("test_").replace("_", " ") + (f" [{parameters}" if bracket else "")


class Fold:
    """The results so far; `add` takes one event, `results` may be asked at any time."""

    def __init__(self) -> None:
        self.run: Json = {}
        self.plan: Json = {}
        self._audit: Json = {}
        self._end: Json | None = None
        self._titles: dict[str, str] = {}
        self._verifies: dict[str, list[Json]] = {}
        self._attempts: dict[str, list[Json]] = {}
        self._started: dict[str, float] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes one event. Unknown ones are left alone: a newer run may say more than this reader knows.

        A check of a variant speaks of a mutant, not of the target.
        """
        said: Json = clean(dict(event))
        if said.get("variant"):
            return
        match said.get("event"):
            case "run.started":
                self._start(said)
            case "plan":
                self.plan = _body(said)
            case "check.started":
                self._started.setdefault(said["check"], said.get("at", 0.0))
            case "check.finished":
                self._finish(said)
            case "run.audit":
                self._audit |= _body(said)
            case "run.finished":
                self._end = _body(said)

    def _start(self, said: Json) -> None:
        if said.get("schema", SCHEMA) != SCHEMA:
            raise StreamError(
                f"This run was written with schema {said['schema']}, but this Holdfast reads schema {SCHEMA}. "
                f"Use Holdfast {said.get('holdfast', 'of the run')} to report it."
            )
        self.run = _body(said)

    def _finish(self, said: Json) -> None:
        check = said["check"]
        if said.get("verdict") not in set(Verdict):
            raise StreamError(
                f"{check} has the verdict {said.get('verdict')!r}, which is none of {', '.join(Verdict)}."
            )
        self._titles[check] = said.get("title") or sentence_of(check)
        self._verifies[check] = [_place(item["id"], item.get("part", 1)) for item in said.get("verifies", [])]
        self._attempts.setdefault(check, []).append(_attempt(said))

    def results(self) -> Results:
        planned = self._planned_checks()
        ids = dict.fromkeys([*planned, *self._attempts, *self._left_out_checks()])
        checks = {check: self._check(check, planned.get(check)) for check in ids}
        rows = [row for plan in self.plan.get("rows", []) if (row := self._row(plan, checks))]
        return Results(self.run, self.plan, rows, list(checks.values()), self._audit, self._end)

    def _planned_checks(self) -> dict[str, list[Json]]:
        """Each check that the plan promised, with the parts for which it did."""
        planned: dict[str, list[Json]] = {}
        for row in self.plan.get("rows", []):
            for part in row.get("parts", []):
                if self._status(row, part)[0] is None and _inside(part):
                    for check in (check for check in part.get("checks", []) if check not in self._left_out):
                        planned.setdefault(check, []).append(_place(row["id"], part["part"]))
        return planned

    def _left_out_checks(self) -> list[str]:
        """Checks that the plan names and the run's budget leaves out; their parts must not read as green."""
        named = {
            c for row in self.plan.get("rows", []) for part in row.get("parts", []) for c in part.get("checks", [])
        }
        return [check for check in self._left_out if check in named]

    @property
    def _left_out(self) -> dict[str, str]:
        """What the plan leaves out, rows and single checks alike, and why."""
        return {left["id"]: f"left out: {left['reason']}" for left in self.plan.get("left_out", [])}

    def _status(self, row: Json, part: Json) -> tuple[Verdict | None, str]:
        """The verdict that the plan itself gives a part, and why; none for a part that is to be looked at."""
        if row.get("excluded"):
            return Verdict.NOT_APPLICABLE, row["excluded"]
        if why := self._left_out.get(row["id"]):
            return Verdict.INCONCLUSIVE, why
        return _STATUS.get(part.get("status", "planned")), part.get("reason") or ""

    def _check(self, check: str, planned: list[Json] | None) -> CheckResult:
        attempts = self._attempts.get(check, [])
        finals = [attempt for attempt in attempts if attempt["final"]]
        verdicts = [Verdict(attempt["verdict"]) for attempt in finals]
        unfinished = self._unfinished(check, finals, planned is not None)
        verdict = fold([*verdicts, Verdict.INCONCLUSIVE] if unfinished else verdicts)
        deciding = next((attempt for attempt in finals if attempt["verdict"] == verdict), None)
        last = attempts[-1] if attempts else None
        return CheckResult(
            check=check,
            title=self._titles.get(check) or sentence_of(check),
            planned=planned is not None,
            verdict=verdict,
            kind=_kind(finals) if verdict is Verdict.FAIL else None,
            reason=deciding["reason"] if deciding else unfinished,
            verifies=self._verifies.get(check) or planned or [],
            attempts=attempts,
            deciding=deciding or last,
        )

    def _unfinished(self, check: str, finals: list[Json], planned: bool) -> str:
        """Why a check is not through with all its repeats; empty when it is."""
        if not finals and check in self._left_out:
            return self._left_out[check]
        due = int(self.run.get("repeat") or 1) if planned else 1
        done = len({attempt["repeat"] for attempt in finals})
        if done >= due:
            return ""
        if due > 1:
            return f"{ENDED} (after {done} of {due} repeats)"
        if check in self._started:
            return f"{ENDED} (the check had started at {self._started[check]:.1f} s)"
        return ENDED

    def _row(self, plan: Json, checks: dict[str, CheckResult]) -> Row | None:
        parts = [self._part(plan, part, checks) for part in plan.get("parts", []) if _inside(part)]
        if not parts:
            return None
        verdict = fold_parts(parts[0].verdict, [part.verdict for part in parts[1:]])
        if verdict is Verdict.PASS and plan.get("known"):
            verdict = Verdict.FIXED
        mine = [checks[check] for check in dict.fromkeys(check for part in parts for check in part.checks)]
        worst = next((check for check in mine if check.verdict is verdict), None)
        return Row(
            plan=plan,
            verdict=verdict,
            kind=_kind(check.to_json() for check in mine) if verdict is Verdict.FAIL else None,
            reason=FIXED if verdict is Verdict.FIXED else _row_reason(verdict, parts),
            parts=parts,
            checks=[check.check for check in mine],
            timings=[timing for check in mine for timing in _timings(check)],
            finding=worst.finding() if worst and verdict is not Verdict.PASS else None,
        )

    def _part(self, row: Json, part: Json, checks: dict[str, CheckResult]) -> Part:
        """The plan's own status folds with the checks: it may hide a `pass`, never a `fail`."""
        place = _place(row["id"], part["part"])
        status, why = self._status(row, part)
        mine = [check for check in checks.values() if place in check.verifies or _promised(check, part, status)]
        verdict = fold(_that_apply([check.verdict for check in mine]) + ([status] if status else []))
        if verdict is Verdict.PASS and part.get("known"):
            verdict = Verdict.FIXED
        reason = why if verdict is status else next((c.reason for c in mine if c.verdict is verdict), "")
        if not mine and status is None:
            reason = "no check for this part"
        if verdict is Verdict.FIXED:
            reason = FIXED
        return Part(part["part"], part, verdict, reason, [check.check for check in mine])


def _that_apply(verdicts: list[Verdict]) -> list[Verdict]:
    """A check of an optional feature that the target lacks says nothing about the part, as long as another one does."""
    return [verdict for verdict in verdicts if verdict is not Verdict.NOT_APPLICABLE] or verdicts


def _body(event: Json) -> Json:
    return {key: value for key, value in event.items() if key not in {"event", "at"}}


def _inside(part: Json) -> bool:
    """A part outside the profile is no part of the answer."""
    return bool(part.get("status") != "outside-profile")


def _attempt(said: Json) -> Json:
    """Every field present, so that no renderer has to ask; a run that breaks off inside a check may lack some."""
    attempt = _filled(said, _ATTEMPT)
    for key, usual in _LISTS.items():
        attempt[key] = [_filled(item, usual) for item in attempt[key]]
    return attempt


def _filled(said: Json, usual: Json) -> Json:
    return {key: said.get(key, value) for key, value in usual.items()}


def _place(requirement: str, part: int) -> Json:
    return {"id": requirement, "part": part}


def _promised(check: CheckResult, part: Json, status: Verdict | None) -> bool:
    return status is None and check.check in part.get("checks", [])


def _kind(failures: Iterable[Json]) -> Kind | None:
    """A target that does something else is the stronger finding than one that shows no sign."""
    kinds = {failure["kind"] for failure in failures if failure["verdict"] == Verdict.FAIL}
    return next((kind for kind in Kind if kind in kinds), None)


def _row_reason(verdict: Verdict, parts: list[Part]) -> str:
    if verdict is Verdict.PARTIAL:
        blind = [part for part in parts if part.verdict in {Verdict.NOT_OBSERVABLE, Verdict.PARTIAL}]
        return "; ".join(f"part {part.number} not looked at: {part.reason}" for part in blind)
    return next((part.reason for part in parts if part.verdict is verdict), "")


def _timings(check: CheckResult) -> list[Json]:
    return [
        {**timing, "check": check.check, "repeat": attempt["repeat"]}
        for attempt in check.finals
        for timing in attempt["timings"]
    ]
