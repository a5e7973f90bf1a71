"""`--only`: what names mean, and what a run that was narrowed by them answers for."""

import pytest
from typer.main import get_command

from holdfast.check.verifies import CheckSpec, Claim
from holdfast.cli.main import app
from holdfast.run.jobs import CARRIED, repeat_command
from holdfast.run.options import Launcher, RunOptions
from holdfast.run.plan import NOT_SELECTED, make_plan
from holdfast.run.plan_announcement import without_password
from holdfast.run.selection import PlanError, Selection, split_names
from holdfast.run.suite import check_names, checks_of
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load

ADMISSION = builtin("admission")
REFERENCE = load(builtin_path("admission"))
ROW, TWO_PARTS = "AD-RATE-03", "AD-RECON-09"
MAIN, EXTRA = "admission/test_x.py::test_the_main_part", "admission/test_x.py::test_the_extra_part[a,b]"


def check(*claims: Claim) -> CheckSpec:
    return CheckSpec(lambda: None, list(claims))


CHECKS = {MAIN: check(Claim(TWO_PARTS)), EXTRA: check(Claim(TWO_PARTS, 2)), "other": check(Claim(ROW))}


def rows(*only: str) -> list[str]:
    return list(make_plan(ADMISSION, REFERENCE, CHECKS, Selection(only)).rows)


@pytest.mark.parametrize("only", ["AD-RATE", "ad-rate", "AD-RATE-*", "AD-RAT?", "AD-RATE-01,ad-rate-0[23456]"])
def test_a_group_is_meant_in_any_case_and_by_patterns(only: str) -> None:
    assert rows(only) == [f"AD-RATE-0{number}" for number in range(1, 7)]


def test_brackets_in_the_name_of_a_check_are_no_pattern() -> None:
    assert rows(EXTRA) == [TWO_PARTS]
    with pytest.raises(PlanError, match="no requirement, group or check"):
        rows("test_the_extra_part[ab]")


def test_commas_part_names_but_not_the_parameters_of_a_check() -> None:
    assert split_names(["a, b", "c", "test_x[1,2],d"]) == ("a", "b", "c", "test_x[1,2]", "d")


def test_one_part_of_a_row_leaves_the_checks_of_its_others_out() -> None:
    plan = make_plan(ADMISSION, REFERENCE, CHECKS, Selection((f"{TWO_PARTS.lower()}#2",)))
    assert list(plan.checks) == [EXTRA]
    first, second = plan.rows[TWO_PARTS]
    assert [(left.id, left.reason) for left in first.left_out] == [(MAIN, NOT_SELECTED)]
    assert (second.checks, second.left_out) == ((EXTRA,), ())


@pytest.mark.parametrize("name", ["test_the_main_part", "the main part", "THE_MAIN_*", MAIN, "*::test_the_main_part"])
def test_a_check_is_meant_by_its_function_its_title_or_its_id(name: str) -> None:
    plan = make_plan(ADMISSION, REFERENCE, CHECKS, Selection((name,)))
    assert list(plan.checks) == [MAIN]
    assert list(plan.rows) == [TWO_PARTS]
    assert [left.id for part in plan.rows[TWO_PARTS] for left in part.left_out] == [EXTRA]


@pytest.mark.parametrize("name", ["test_the_extra_part", "test_the_extra_part[a,b]"])
def test_a_check_with_parameters_is_meant_with_them_or_without(name: str) -> None:
    assert list(make_plan(ADMISSION, REFERENCE, CHECKS, Selection((name,))).checks) == [EXTRA]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("AD-RAT-03", "AD-RAT-03: no requirement, group or check of admission; did you mean 'AD-RATE-03'?"),
        ("test_the_mian_part", "did you mean 'the_main_part'?"),
        ("AD-RATE-03#2", "AD-RATE-03#2: no such part; AD-RATE-03 has 1, see holdfast explain"),
        ("AD-RATE-03#x", "AD-RATE-03#x: no such part; AD-RATE-03 has 1, see holdfast explain"),
        ("zzz", "zzz: no requirement, group or check of admission; see holdfast requirements"),
        (",", "--only: names nothing; write a requirement, a group or a check"),
    ],
)
def test_a_name_that_nothing_has_is_refused_with_the_nearest(name: str, sentence: str) -> None:
    with pytest.raises(PlanError) as refused:
        rows(name)
    assert sentence in str(refused.value)


def test_names_of_checks_are_found_without_importing_them() -> None:
    for key in ("admission", "lockd"):
        assert {*checks_of(key)} <= {*check_names(key)}


def test_the_command_that_repeats_a_check_carries_what_changes_it() -> None:
    asked = RunOptions(
        seed=7, profile="wire", launcher=Launcher.EXEC, redis_url="redis://:secret@h:1/0", time_scale=0.5, repeat=3
    )
    assert repeat_command(check(Claim(ROW), Claim("AD-VER-01")), asked, REFERENCE) == (
        "holdfast run admission --only AD-RATE-03,AD-VER-01 --seed 7 --profile wire --launcher exec "
        "--redis-url 'redis://:…@h:1/0' --time-scale 0.5"
    )
    assert repeat_command(check(Claim(ROW)), RunOptions(), REFERENCE) == (
        "holdfast run admission --only AD-RATE-03 --seed 1"
    )


def test_a_repeated_command_has_only_options_that_it_takes() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # a group of them
    for command, names in CARRIED.items():
        assert {*names} <= {param.name for param in commands[command].params}


def test_a_password_in_a_url_does_not_get_into_a_report() -> None:
    assert without_password("--redis-url=redis://me:secret@host:6379") == "--redis-url=redis://me:…@host:6379"
    assert without_password("redis://host:6379/0") == "redis://host:6379/0"
