import dataclasses

import pytest

from holdfast.check.verifies import CheckSpec, Claim
from holdfast.run.estimate import Pace
from holdfast.run.events import Alone, LeftOut, LongestCheck
from holdfast.run.narrowed import narrowed
from holdfast.run.options import Level, RunOptions
from holdfast.run.plan import NOT_SELECTED, Plan, announced, make_plan, within_budget
from holdfast.run.selection import PlanError, Selection
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import Target, builtin_path, load
from holdfast.target.not_offered import NotOffered

ADMISSION = builtin("admission")
REFERENCE = load(builtin_path("admission"))


# Somebody else starts it, so there is one deployment, and no other for a check that wants its own.
STANDING = dataclasses.replace(
    REFERENCE, nodes=tuple(dataclasses.replace(node, start=None) for node in REFERENCE.nodes)
)


def check(
    *claims: Claim, waits: str = "0", settings: dict[str, str] | None = None, isolation: str = "shared"
) -> CheckSpec:
    return CheckSpec(lambda: None, list(claims), waits=waits, settings=settings or {}, isolation=isolation)


def pace(target: Target, repeat: int = 1) -> Pace:
    return Pace(target, ADMISSION, target.timings(ADMISSION), 24, repeat)


def planned(target: Target, **checks: CheckSpec) -> dict[str, list[tuple[str, str | None]]]:
    only = Selection(only=tuple({claim.id for spec in checks.values() for claim in spec.claims}))
    plan = make_plan(ADMISSION, target, checks, only)
    return {row: [(part.status, part.hook) for part in parts] for row, parts in plan.rows.items()}


def test_parts_outside_the_profile_are_no_part_of_the_answer() -> None:
    wire = dataclasses.replace(REFERENCE, profile="wire")
    rows = planned(wire, a=check(Claim("AD-RECON-09")), b=check(Claim("AD-OBS-01")))
    assert rows == {"AD-RECON-09": [("planned", None)]}


def test_a_part_without_its_capability_names_the_hook() -> None:
    blind = dataclasses.replace(REFERENCE, observe={})
    assert planned(blind, a=check(Claim("AD-OBS-01"))) == {"AD-OBS-01": [("not-observable", "[observe] events")]}


def test_a_check_with_a_setting_that_the_target_does_not_take_is_blind() -> None:
    bare = dataclasses.replace(REFERENCE, settings={})
    rows = planned(bare, a=check(Claim("AD-VER-01"), settings={"current_build": "1.4.0"}))
    assert rows == {"AD-VER-01": [("not-observable", "[[node]] start and [settings] current_build")]}


def test_a_group_selects_all_its_rows_and_a_level_leaves_weaker_ones_out() -> None:
    plan = make_plan(ADMISSION, REFERENCE, {}, Selection(only=("AD-QUEUE",), level="must"))
    assert len(plan.rows) == 9
    assert all(ADMISSION.requirements[row].level == "MUST" for row in plan.rows)


@pytest.mark.parametrize(
    ("claims", "complaint"),
    [
        ([Claim("AD-NONE-01")], "no requirement of admission"),
        ([Claim("AD-RATE-03", 2)], "part 2 of AD-RATE-03, which has 1"),
        ([Claim("AD-RATE-03"), Claim("AD-QUEUE-08")], "a MUST and a SHOULD at once"),
    ],
)
def test_a_claim_that_fits_no_row_is_our_mistake(claims: list[Claim], complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        make_plan(ADMISSION, REFERENCE, {"a": check(*claims)}, Selection())


def test_a_budget_keeps_the_short_checks_and_says_what_it_left_out() -> None:
    checks = {"short": check(Claim("AD-RATE-03")), "long": check(Claim("AD-RATE-01"), waits="2*rate_lock")}
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection(only=("AD-RATE-03", "AD-RATE-01")))
    within_budget(plan, pace(REFERENCE), 10)
    assert list(plan.checks) == ["short"]
    assert list(plan.rows) == ["AD-RATE-03"]
    assert [left.id for left in plan.left_out] == ["long"]


def test_a_row_of_which_the_budget_keeps_some_checks_says_what_is_left_out() -> None:
    checks = {"short": check(Claim("AD-RATE-03")), "long": check(Claim("AD-RATE-03"), waits="2*rate_lock")}
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection(only=("AD-RATE-03",)))
    within_budget(plan, pace(REFERENCE), 10)
    (part,) = plan.rows["AD-RATE-03"]
    assert part.checks == ("short",)
    assert part.left_out == (LeftOut("long", "over the budget of 10 s"),)


def walk(*claims: Claim, needs: frozenset[str] = frozenset({"wire"})) -> CheckSpec:
    return dataclasses.replace(check(*claims, waits="grace"), walk_steps=60, further_needs=needs)


def test_a_walk_takes_part_in_a_whole_run_beside_the_checks_of_its_rows() -> None:
    checks = {"own": check(Claim("AD-RATE-03")), "walk": walk(Claim("AD-RATE-03"), Claim("AD-RATE-01"))}
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection())
    assert list(plan.checks) == ["own", "walk"]
    assert plan.rows["AD-RATE-03"][0].checks == ("own", "walk")


def test_a_run_that_names_rows_does_without_walks_unless_it_names_one() -> None:
    checks = {"own": check(Claim("AD-RATE-03")), "x/test_walk.py::test_w": walk(Claim("AD-RATE-03"))}
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection(only=("AD-RATE-03",)))
    assert (list(plan.checks), plan.rows["AD-RATE-03"][0].left_out) == (["own"], ())
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection(only=("test_w",)))
    assert list(plan.checks) == ["x/test_walk.py::test_w"]


def test_a_walk_that_is_not_selected_or_can_not_run_leaves_no_gap() -> None:
    checks = {"own": check(Claim("AD-RATE-03")), "walk": walk(Claim("AD-RATE-03"), needs=frozenset({"clock"}))}
    blind = dataclasses.replace(REFERENCE, settings={})
    for target, deselected in ((REFERENCE, frozenset({"walk"})), (blind, frozenset[str]())):
        (part,) = make_plan(ADMISSION, target, checks, Selection(), deselected).rows["AD-RATE-03"]
        assert (part.checks, part.left_out) == (("own",), ())


def test_a_budget_is_for_the_checks_of_rows_first_and_a_walk_without_room_leaves_no_gap() -> None:
    checks = {"walk": walk(Claim("AD-RATE-03"), Claim("AD-RATE-01")), "own": check(Claim("AD-RATE-03"), waits="grace")}
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection())
    planned = REFERENCE.timings(ADMISSION).evaluate("grace")
    within_budget(plan, dataclasses.replace(pace(REFERENCE), overlap=1), planned)
    assert list(plan.checks) == ["own"]
    assert [left.id for left in plan.left_out] == ["walk"]
    assert plan.rows["AD-RATE-03"][0].left_out == ()
    assert "AD-RATE-01" not in plan.rows


def test_a_row_with_one_chosen_check_answers_for_all_its_parts() -> None:
    checks = {"a": check(Claim("AD-RECON-09")), "b": check(Claim("AD-RECON-09", 2)), "c": check(Claim("AD-RATE-03"))}
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection(), frozenset({"b", "c"}))
    assert list(plan.checks) == ["a"]
    assert {row: [(part.checks, part.left_out) for part in parts] for row, parts in plan.rows.items()} == {
        "AD-RECON-09": [(("a",), ()), ((), (LeftOut("b", NOT_SELECTED),))]
    }


def test_a_check_that_the_target_can_not_have_is_left_out_of_a_part_that_others_look_at() -> None:
    bare = dataclasses.replace(REFERENCE, settings={})
    checks = {"a": check(Claim("AD-VER-01")), "b": check(Claim("AD-VER-01"), settings={"current_build": "1.4.0"})}
    (part, *_) = make_plan(ADMISSION, bare, checks, Selection(only=("AD-VER-01",))).rows["AD-VER-01"]
    assert (part.status, part.checks) == ("planned", ("a",))
    assert [left.reason for left in part.left_out] == ["the target can't be started with another current_build"]


def test_a_check_that_needs_more_than_the_profile_is_no_part_of_the_answer() -> None:
    wire = dataclasses.replace(REFERENCE, profile="wire")
    more = dataclasses.replace(check(Claim("AD-VER-01")), further_needs=frozenset({"redis"}))
    plan = make_plan(ADMISSION, wire, {"a": check(Claim("AD-VER-01")), "b": more}, Selection(only=("AD-VER-01",)))
    assert [(part.checks, part.left_out) for part in plan.rows["AD-VER-01"]] == [(("a",), ())]


@pytest.mark.parametrize("key", ["AD-OBS-01", "AD-OBS", "AD-OBS-01#1", "events"])
def test_what_the_target_does_not_offer_is_not_applicable(key: str) -> None:
    without = dataclasses.replace(REFERENCE, observe={}, not_offered=NotOffered({key: "we log nothing"}))
    (part, *_) = make_plan(ADMISSION, without, {}, Selection(only=("AD-OBS-01",))).rows["AD-OBS-01"]
    assert (part.status, part.reason) == ("not-applicable", "not offered: we log nothing")


@pytest.mark.parametrize(
    ("options", "deselected", "ways"),
    [
        (RunOptions(), (), []),
        (RunOptions(only=("AD-RATE", "AD-VER-01")), (), ["--only AD-RATE --only AD-VER-01"]),
        (RunOptions(level=Level.MUST), (), ["--level must"]),
        (RunOptions(), ("a", "b"), ["2 checks not selected"]),
        (RunOptions(last_failed=True), ("a",), ["--last-failed"]),
    ],
)
def test_a_narrowed_run_says_by_what(options: RunOptions, deselected: tuple[str, ...], ways: list[str]) -> None:
    assert narrowed(options, deselected, budget=False) == ways


def test_the_announced_plan_names_the_longest_check_and_the_sum() -> None:
    checks = {
        "a": check(Claim("AD-RATE-03"), waits="rate_window"),
        "b": check(Claim("AD-RATE-01"), waits="rate_lock/2"),
    }
    plan = make_plan(ADMISSION, REFERENCE, checks, Selection(only=("AD-RATE-03", "AD-RATE-01")))
    fields = announced(plan, ADMISSION, pace(REFERENCE))
    assert fields.longest_check == LongestCheck("a", 12.0)
    assert fields.planned_sum_s == 18.0


def plan_of_two(target: Target) -> Plan:
    checks = {
        "beside": check(Claim("AD-RATE-03"), waits="rate_window"),
        "alone": check(Claim("AD-RATE-01"), waits="rate_lock/2", isolation="quiet"),
    }
    return make_plan(ADMISSION, target, checks, Selection(only=("AD-RATE-03", "AD-RATE-01")))


def test_what_runs_alone_and_the_wait_before_it_are_in_the_plan() -> None:
    fields = announced(plan_of_two(STANDING), ADMISSION, pace(STANDING))
    settle = STANDING.timings(ADMISSION).evaluate(ADMISSION.settle)
    assert fields.alone == Alone(1, round(settle, 1))
    assert fields.planned_wall_s == pytest.approx(12.0 + settle + 6.0)


def test_where_every_check_can_have_a_deployment_of_its_own_none_runs_alone() -> None:
    fields = announced(plan_of_two(REFERENCE), ADMISSION, pace(REFERENCE))
    assert (fields.alone, fields.planned_wall_s) == (None, 12.0)


def test_repeats_of_a_check_overlap_unless_it_runs_alone() -> None:
    fields = announced(plan_of_two(STANDING), ADMISSION, pace(STANDING, repeat=48))
    settle = STANDING.timings(ADMISSION).evaluate(ADMISSION.settle)
    assert fields.planned_wall_s == pytest.approx(2 * 12.0 + settle + 48 * 6.0)
    assert fields.planned_sum_s == pytest.approx(48 * 18.0)


def test_a_budget_counts_what_stands_still_and_what_runs_alone() -> None:
    plan = plan_of_two(STANDING)
    within_budget(plan, pace(STANDING), 12.5)
    assert list(plan.checks) == ["alone"], "the wait between both would not fit"
