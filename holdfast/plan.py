"""What a run answers for: which rows and parts, by which checks, and why the others stay out."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.capability import HOOK, Capability
from holdfast.catalogue import LEVELS, Catalogue, Part, Requirement
from holdfast.check import CheckSpec, Claim
from holdfast.target import Target
from holdfast.timings import Timings


class PlanError(ValueError):
    """The suite and the catalogue do not fit together, or nothing is left to run."""


@dataclass(frozen=True)
class Selection:
    """What the user asked for; nothing means all."""

    only: tuple[str, ...] = ()
    level: str | None = None

    def takes(self, row: Requirement) -> bool:
        if self.level and LEVELS.index(row.level) > LEVELS.index(self.level.upper()):
            return False
        return not self.only or any(_names(wanted, row) for wanted in self.only)

    def check(self, catalogue: Catalogue) -> None:
        """What was asked for by a name that does not exist must not be left out in silence."""
        for wanted in self.only:
            if not any(_names(wanted, row) for row in catalogue):
                raise PlanError(f"{wanted}: no requirement or group of {catalogue.key}; see holdfast requirements")


def _names(wanted: str, row: Requirement) -> bool:
    return row.id == wanted or row.id.startswith(f"{wanted}-")


@dataclass(frozen=True)
class PlannedPart:
    part: Part
    status: str
    reason: str = ""
    hook: str | None = None
    unseen: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    known: bool = False

    def fields(self) -> dict[str, Any]:
        return {
            "part": self.part.number,
            "needs": sorted(self.part.needs),
            "observe": self.part.observe,
            "status": self.status,
            "reason": self.reason,
            "hook": self.hook,
            "unseen": list(self.unseen),
            "checks": list(self.checks),
            "known": self.known,
        }


@dataclass
class Plan:
    rows: dict[str, list[PlannedPart]] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    checks: dict[str, CheckSpec] = field(default_factory=dict)
    left_out: list[dict[str, str]] = field(default_factory=list)


def make_plan(
    catalogue: Catalogue,
    target: Target,
    checks: Mapping[str, CheckSpec],
    selection: Selection,
    deselected: frozenset[str] = frozenset(),
    *,
    whole: bool = True,
) -> Plan:
    """`checks` are all checks of the suite by id; `deselected` those that the user left out by name.

    Without `whole` the checks do not claim to cover the catalogue: only what they look at is answered for.
    """
    _validate(catalogue, checks)
    selection.check(catalogue)
    plan = Plan(known=frozenset(entry.id for entry in target.known_failures if entry.part is None))
    by_claim = _by_claim(checks)
    for row in catalogue:
        if not selection.takes(row):
            continue
        parts = [
            _without_settings(_plan_part(row, part, target, by_claim[Claim(row.id, part.number)]), checks, target)
            for part in row.parts
        ]
        parts = [part for part in parts if part.status != "outside-profile"]
        if deselected or not whole:
            parts = [part for part in parts if set(part.checks) - deselected]
        if parts:
            plan.rows[row.id] = parts
    wanted = {
        check for parts in plan.rows.values() for part in parts if part.status == "planned" for check in part.checks
    }
    seen = target.capabilities() & target.in_profile()
    plan.checks = {
        id_: spec for id_, spec in checks.items() if id_ in wanted - deselected and spec.needs(catalogue) <= seen
    }
    _keep_only_what_runs(plan)
    return plan


def _keep_only_what_runs(plan: Plan) -> None:
    for row, parts in plan.rows.items():
        plan.rows[row] = [
            replace(part, checks=tuple(check for check in part.checks if check in plan.checks)) for part in parts
        ]


def _plan_part(row: Requirement, part: Part, target: Target, checks: Sequence[str]) -> PlannedPart:
    if row.excluded:
        return PlannedPart(part, "excluded", row.excluded)
    if not part.needs <= target.in_profile():
        return PlannedPart(part, "outside-profile")
    if missing := part.needs - target.capabilities():
        return _blind(row, part, missing)
    known = any(entry.id == row.id and entry.part == part.number for entry in target.known_failures)
    return PlannedPart(part, "planned", checks=tuple(checks), known=known)


def _without_settings(part: PlannedPart, checks: Mapping[str, CheckSpec], target: Target) -> PlannedPart:
    """A check that starts the target with another setting needs the descriptor to say how; without it, it is blind."""
    taken = target.settings.keys() if target.startable else set[str]()
    missing = {check: sorted(checks[check].settings.keys() - taken) for check in part.checks}
    runnable = tuple(check for check in part.checks if not missing[check])
    if part.status != "planned" or not part.checks or runnable == part.checks:
        return part
    if runnable:
        return replace(part, checks=runnable)
    name = next(names[0] for names in missing.values())
    reason = f"the target can't be started with another {name}"
    return PlannedPart(part.part, "not-observable", reason, f"[[node]] start and [settings] {name}")


def _blind(row: Requirement, part: Part, missing: frozenset[Capability]) -> PlannedPart:
    first = min(missing)
    unseen = tuple(violation.text for violation in row.unseen_without(missing))
    return PlannedPart(part, "not-observable", f"the target gives no {', '.join(sorted(missing))}", HOOK[first], unseen)


def _by_claim(checks: Mapping[str, CheckSpec]) -> dict[Claim, list[str]]:
    found: dict[Claim, list[str]] = defaultdict(list)
    for id_, spec in checks.items():
        for claim in spec.claims:
            found[claim].append(id_)
    return found


def _validate(catalogue: Catalogue, checks: Mapping[str, CheckSpec]) -> None:
    for id_, spec in checks.items():
        for claim in spec.claims:
            row = catalogue.requirements.get(claim.id)
            if row is None:
                raise PlanError(f"{id_} verifies {claim.id}, which is no requirement of {catalogue.key}")
            if not 1 <= claim.part <= len(row.parts):
                raise PlanError(f"{id_} verifies part {claim.part} of {claim.id}, which has {len(row.parts)}")
        if len({catalogue.requirements[claim.id].level == "MUST" for claim in spec.claims}) > 1:
            raise PlanError(f"{id_} verifies a MUST and a SHOULD at once, so a failure would have two verdicts")


def plan_fields(plan: Plan, catalogue: Catalogue, timings: Timings, overlap: int) -> dict[str, Any]:
    """The `plan` event: announced before the run, reconciled after it."""
    planned = {id_: timings.evaluate(spec.waits) for id_, spec in plan.checks.items()}
    longest = max(planned, key=lambda id_: planned[id_], default=None)
    total = sum(planned.values())
    return {
        "requirements": len(plan.rows),
        "parts": sum(len(parts) for parts in plan.rows.values()),
        "checks": len(plan.checks),
        "overlap": overlap,
        "faults": sum(1 for spec in plan.checks.values() if spec.isolation == "disruptive"),
        "planned_wall_s": round(max(planned.get(longest or "", 0.0), total / overlap), 1),
        "longest_check": {"check": longest, "planned_s": round(planned[longest], 1)} if longest else None,
        "planned_sum_s": round(total, 1),
        "left_out": plan.left_out,
        "rows": [
            {**_row_fields(catalogue.requirements[id_], parts), "known": id_ in plan.known}
            for id_, parts in plan.rows.items()
        ],
    }


def _row_fields(row: Requirement, parts: Sequence[PlannedPart]) -> dict[str, Any]:
    return {
        "id": row.id,
        "spec": row.spec,
        "level": row.level,
        "title": row.title,
        "text": row.text,
        "section": row.section,
        "lines": row.lines,
        "origin": row.origin,
        "violations": len(row.violations),
        "excluded": row.excluded,
        "parts": [part.fields() for part in parts],
    }


def within_budget(plan: Plan, planned: Callable[[CheckSpec], float], budget: float, overlap: int) -> Plan:
    """Keep the most telling checks that fit: those that settle the most rows per planned second come first."""
    order = sorted(plan.checks.items(), key=lambda item: -len(item[1].claims) / (1 + planned(item[1])))
    kept: dict[str, CheckSpec] = {}
    spent = 0.0
    for id_, spec in order:
        if planned(spec) <= budget and spent + planned(spec) <= budget * overlap:
            kept[id_] = spec
            spent += planned(spec)
        else:
            plan.left_out.append({"id": id_, "reason": f"over the budget of {budget:g} s"})
    plan.checks = {id_: spec for id_, spec in plan.checks.items() if id_ in kept}
    for row, parts in list(plan.rows.items()):
        plan.rows[row] = [part for part in parts if part.status != "planned" or set(part.checks) & kept.keys()]
        if not plan.rows[row]:
            del plan.rows[row]
    _keep_only_what_runs(plan)
    return plan
