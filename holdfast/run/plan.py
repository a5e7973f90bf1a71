"""What a run answers for: which rows and parts, by which checks, and why the others stay out."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.check.verifies import CheckSpec, Claim
from holdfast.run.estimate import Pace
from holdfast.run.events import Alone, DocumentFacts, LeftOut, LongestCheck, PartPlan, PlanMade, RowPlan
from holdfast.run.selection import Choice, PlanError, Selection
from holdfast.run.unmet_needs import Lack, lack, lacking_hook
from holdfast.spec.catalogue import Catalogue, Part, Requirement
from holdfast.target.descriptor import Target

NOT_SELECTED = "not selected"


@dataclass(frozen=True)
class PlannedPart:
    part: Part
    status: str
    reason: str = ""
    hook: str | None = None
    unseen: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    known: bool = False

    def without(self, gone: Mapping[str, str]) -> "PlannedPart":
        """Returns the part without these checks of it, which are left out for the given reasons."""
        mine = {check: gone[check] for check in self.checks if check in gone}
        left = tuple(LeftOut(check, reason) for check, reason in mine.items())
        kept = tuple(check for check in self.checks if check not in mine)
        return replace(self, checks=kept, left_out=(*self.left_out, *left))

    def without_gaps(self, walks: frozenset[str]) -> "PlannedPart":
        """Returns the part without what it says about walks that were left out: its own checks look at all of it."""
        return replace(self, left_out=tuple(left for left in self.left_out if left.id not in walks))

    def announced(self) -> PartPlan:
        return PartPlan(
            part=self.part.number,
            needs=sorted(self.part.needs),
            observe=self.part.observe,
            status=self.status,
            reason=self.reason,
            hook=self.hook,
            unseen=list(self.unseen),
            checks=list(self.checks),
            left_out=list(self.left_out),
            known=self.known,
        )


@dataclass
class Plan:
    rows: dict[str, list[PlannedPart]] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    checks: dict[str, CheckSpec] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    narrowed: list[str] = field(default_factory=list)


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

    Of a row that any chosen check looks at, all parts are answered for: what was left out makes it `partial`. Without
    `whole` the checks do not claim to cover the catalogue: only what they look at is answered for. A walk is one more
    look beside a row's own checks, so a run that names rows does without walks, and a walk that is left out leaves no
    gap.
    """
    _validate(catalogue, checks)
    selection.check(catalogue, checks)
    choice = selection.among(checks)
    if whole:
        checks = {id_: spec for id_, spec in checks.items() if not spec.walks or choice.takes_walk(id_)}
    inside = {id_: spec for id_, spec in checks.items() if spec.needs(catalogue) <= target.in_profile()}
    lacks = {id_: found for id_, spec in inside.items() if (found := _lack(spec, target, catalogue))}
    unchosen = dict.fromkeys(deselected, NOT_SELECTED)
    plan = Plan(known=frozenset(entry.id for entry in target.known_failures if entry.part is None))
    by_claim = _by_claim(inside)
    walks = _walks(checks)
    for row in catalogue:
        if not choice.takes(row):
            continue
        parts = [_plan_part(row, part, target, by_claim[Claim(row.id, part.number)]) for part in row.parts]
        parts = [_without_lacking(part, lacks) for part in parts if part.status != "outside-profile"]
        if not whole:
            parts = [part for part in parts if part.checks]
        if (deselected or not whole) and not any(set(part.checks) - deselected for part in parts):
            continue
        if parts:
            gone = [part.without(unchosen | _unasked(choice, row, part)) for part in parts]
            plan.rows[row.id] = [part.without_gaps(walks) for part in gone]
    wanted = {check for parts in plan.rows.values() for part in parts for check in part.checks}
    plan.checks = {id_: spec for id_, spec in checks.items() if id_ in wanted}
    return plan


def _walks(checks: Mapping[str, CheckSpec]) -> frozenset[str]:
    return frozenset(id_ for id_, spec in checks.items() if spec.walks)


def _unasked(choice: Choice, row: Requirement, part: PlannedPart) -> dict[str, str]:
    return dict.fromkeys(choice.left_out(row, part.part, part.checks), NOT_SELECTED)


def _plan_part(row: Requirement, part: Part, target: Target, checks: Sequence[str]) -> PlannedPart:
    if row.excluded:
        return PlannedPart(part, "excluded", row.excluded)
    if not part.needs <= target.in_profile():
        return PlannedPart(part, "outside-profile")
    if reason := target.not_offered.of_part(row, part):
        return PlannedPart(part, "not-applicable", reason)
    if missing := part.needs - target.capabilities():
        return _blind(row, part, target, missing)
    known = any(entry.id == row.id and entry.part == part.number for entry in target.known_failures)
    return PlannedPart(part, "planned", checks=tuple(checks), known=known)


def _lack(spec: CheckSpec, target: Target, catalogue: Catalogue) -> Lack | None:
    """Returns why a check of the profile can't run on this target, and the entry that would mend it; else None."""
    if missing := spec.needs(catalogue) - target.capabilities():
        return f"the target gives no {', '.join(sorted(missing))}", target.hook(min(missing))
    if found := lack(spec, target):
        return found
    return lacking_hook(spec, target)


def _without_lacking(part: PlannedPart, lacks: Mapping[str, Lack]) -> PlannedPart:
    """A check that asks for what the target can't give (another setting, a role) is blind; another may still run."""
    blind = [check for check in part.checks if check in lacks]
    if blind and len(blind) == len(part.checks):
        reason, hook = lacks[blind[0]]
        return PlannedPart(part.part, "not-observable", reason, hook)
    return part.without({check: lacks[check][0] for check in blind})


def _blind(row: Requirement, part: Part, target: Target, missing: frozenset[str]) -> PlannedPart:
    first = min(missing)
    unseen = tuple(violation.text for violation in row.unseen_without(missing))
    return PlannedPart(
        part, "not-observable", f"the target gives no {', '.join(sorted(missing))}", target.hook(first), unseen
    )


def _by_claim(checks: Mapping[str, CheckSpec]) -> dict[Claim, list[str]]:
    found: dict[Claim, list[str]] = defaultdict(list)
    for id_, spec in checks.items():
        for claim in spec.claims:
            found[claim].append(id_)
    return found


def _validate(catalogue: Catalogue, checks: Mapping[str, CheckSpec]) -> None:
    for id_, spec in checks.items():
        if not spec.started and spec.isolation == "shared":
            raise PlanError(f'{id_}: start="by hand" needs a deployment of its own; add isolation="quiet"')
        for claim in spec.claims:
            row = catalogue.requirements.get(claim.id)
            if row is None:
                raise PlanError(f"{id_} verifies {claim.id}, which is no requirement of {catalogue.key}")
            if not 1 <= claim.part <= len(row.parts):
                raise PlanError(f"{id_} verifies part {claim.part} of {claim.id}, which has {len(row.parts)}")
        declared = {f"{hook.section}.{hook.name}" for hook in catalogue.hooks}
        if undeclared := sorted(spec.hooks - declared):
            raise PlanError(f"{id_} needs the hook {undeclared[0]}, which {catalogue.key} does not declare ([[hook]])")
        if not spec.walks and len({catalogue.requirements[claim.id].level == "MUST" for claim in spec.claims}) > 1:
            raise PlanError(f"{id_} verifies a MUST and a SHOULD at once, so a failure would have two verdicts")


def announced(plan: Plan, catalogue: Catalogue, pace: Pace) -> PlanMade:
    """The plan as an event: announced before the run, reconciled after it."""
    specs = list(plan.checks.values())
    planned = {id_: pace.planned(spec) for id_, spec in plan.checks.items()}
    longest = max(planned, key=lambda id_: planned[id_], default=None)
    alone = len(pace.alone(specs))
    return PlanMade(
        requirements=len(plan.rows),
        parts=sum(len(parts) for parts in plan.rows.values()),
        checks=len(plan.checks),
        overlap=pace.overlap,
        faults=sum(1 for spec in plan.checks.values() if spec.isolation == "disruptive"),
        planned_wall_s=round(pace.wall(specs), 1),
        planned_sum_s=round(pace.total(specs), 1),
        longest_check=LongestCheck(longest, round(planned[longest], 1)) if longest else None,
        alone=Alone(alone, round(pace.settling(specs), 1)) if alone else None,
        left_out=plan.left_out,
        narrowed=plan.narrowed,
        rows=[_row_plan(catalogue, id_, parts, id_ in plan.known) for id_, parts in plan.rows.items()],
    )


def _row_plan(catalogue: Catalogue, id_: str, parts: Sequence[PlannedPart], known: bool) -> RowPlan:
    row, source = catalogue.requirements[id_], catalogue.document
    return RowPlan(
        id=row.id,
        spec=row.spec,
        level=row.level,
        title=row.title,
        text=row.text,
        section=row.section,
        lines=row.lines,
        origin=row.origin,
        violations=len(row.violations),
        excluded=row.excluded,
        document=DocumentFacts(source.title, source.repository, source.path, source.commit) if source else None,
        load=row.load,
        parts=[part.announced() for part in parts],
        known=known,
    )


def within_budget(plan: Plan, pace: Pace, budget: float) -> Plan:
    """Keep the most telling checks that fit: those that decide the most rows per planned second come first.

    Walks come last: they decide no row by themselves.
    """
    order = sorted(plan.checks.items(), key=lambda item: (item[1].walks, -_told_a_second(item[1], pace)))
    gone: dict[str, str] = {}
    kept: list[CheckSpec] = []
    for id_, spec in order:
        if pace.wall([*kept, spec]) <= budget:
            kept.append(spec)
        else:
            gone[id_] = f"over the budget of {budget:g} s"
    walks = _walks(plan.checks)
    plan.left_out += [LeftOut(id_, reason) for id_, reason in gone.items()]
    plan.checks = {id_: spec for id_, spec in plan.checks.items() if id_ not in gone}
    for row, parts in list(plan.rows.items()):
        left = [part.without(gone).without_gaps(walks) for part in parts]
        if any(part.checks for part in parts) and not any(set(part.checks) - walks for part in left):
            del plan.rows[row]  # none of its checks fits, so the run does not answer for it
        else:
            plan.rows[row] = left
    return plan


def _told_a_second(spec: CheckSpec, pace: Pace) -> float:
    return len(spec.claims) / (1 + pace.planned(spec))
