"""The checks under plain pytest: every habit of its users works, with the built-in target and with a hopeless one."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.product.hopeless import fails_at_every_attempt, listening

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent.parent
SUITE = ROOT / "conformance" / "admission"
SLOT = SUITE / "test_admit_slot.py"
WAITING = f"{SUITE / 'test_replacement.py'}::test_a_further_attempt_gets_an_offer_and_nothing_more"
WAITS = 1.0
# Both ends of a span are rounded on their own.
ROUNDED = 0.002


@pytest.fixture
def hopeless(pytester: pytest.Pytester) -> Iterator[Path]:
    """The descriptor of a target that answers 500 to every attempt, so that each check fails at once."""
    with listening(fails_at_every_attempt) as url:
        head = '[target]\nname = "hopeless"\nspec = "admission"\n'
        node = f'[[node]]\nname = "a"\nurls = {{ http = "{url}" }}\n'
        yield pytester.makefile(".toml", hopeless=f'{head}{node}[credentials]\nauth_secret = "never looked at"')


def run(pytester: pytest.Pytester, *words: str | Path) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words, timeout=60)


def target(name: str | Path) -> str:
    return f"--holdfast-target={name}"


def names_run(result: pytest.RunResult) -> set[str]:
    """The checks that have a verdict in verbose output."""
    words = [line.split() for line in result.outlines if "::test_" in line and "%]" in line]
    return {line[0].rpartition("::")[2] for line in words}


def test_without_a_target_the_plugin_is_inert(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_of_somebody_else(): pass")
    run(pytester).assert_outcomes(passed=1)


def test_without_a_target_checks_say_what_is_missing(pytester: pytest.Pytester) -> None:
    result = run(pytester, SLOT)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: these are checks of a target: give --holdfast-target FILE (holdfast init writes one)"]
    )


@pytest.mark.parametrize("room", [SUITE, ROOT / "holdfast" / "conformance" / "admission"])
def test_both_spellings_of_a_path_and_node_ids_work(pytester: pytest.Pytester, room: Path) -> None:
    check = "test_a_valid_attempt_with_a_free_slot_gets_a_session_and_a_token"
    result = run(pytester, f"{room / SLOT.name}::{check}", target("admission"), "-v")
    result.assert_outcomes(passed=1)
    assert names_run(result) == {check}


def test_a_node_id_answers_for_its_own_rows_alone(pytester: pytest.Pytester) -> None:
    run(pytester, WAITING, target("admission"), "--holdfast-results=results").assert_outcomes(passed=1)
    events = [json.loads(line) for line in Path("results/events.jsonl").read_text().splitlines()]
    (plan,) = [event for event in events if event["event"] == "plan"]
    assert [row["id"] for row in plan["rows"]] == ["AD-REPL-01"]
    assert plan["narrowed"][0].endswith("checks not selected")


def test_a_word_selects_checks_by_name(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SLOT, target(hopeless), "-v", "-k", "free_slot and token")
    assert names_run(result) == {"test_a_valid_attempt_with_a_free_slot_gets_a_session_and_a_token"}


def test_one_requirement_alone(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SUITE, target(hopeless), "--holdfast-only=AD-VER-01", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert names_run(result) <= {name for name in names_run(result) if "build" in name}
    assert names_run(result)


def test_what_failed_last_is_run_again(pytester: pytest.Pytester, hopeless: Path) -> None:
    words = (SLOT, target(hopeless), "-v", "-o", f"cache_dir={pytester.path / 'cache'}")
    first = pytester.runpytest_subprocess(*words, "-k", "free_slot and token", timeout=60)
    again = pytester.runpytest_subprocess(*words, "--lf", timeout=60)
    assert names_run(first) == names_run(again)
    assert len(names_run(again)) == 1


def test_the_first_failure_can_be_the_last(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SLOT, target(hopeless), "-x")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_durations_are_those_of_the_checks(pytester: pytest.Pytester) -> None:
    result = run(pytester, WAITING, target("admission"), "--durations=1", "--junitxml=junit.xml")
    (line,) = [line for line in result.outlines if " call " in line]
    assert WAITS - ROUNDED <= float(line.split("s ")[0]) < 3 * WAITS
    case = ET.parse(pytester.path / "junit.xml").find(".//testcase")  # noqa: S314 - written by the line above
    assert case is not None
    assert WAITS - ROUNDED <= float(case.attrib["time"]) < 3 * WAITS


def test_a_failure_reads_as_a_finding(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SLOT, target(hopeless), "-k", "free_slot and token", "--junitxml=junit.xml")
    result.stdout.fnmatch_lines(
        ["fail: expected *; seen 500*", "  expected  *", "  seen      500*", "*+0.* → PUT /admin/*"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    failure = ET.parse(pytester.path / "junit.xml").find(".//failure")  # noqa: S314 - written by the line above
    assert failure is not None
    assert "→ PUT /admin/" in (failure.text or "")


def allure_results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("*-result.json")]


def test_allure_gets_steps_transcript_and_real_times(pytester: pytest.Pytester) -> None:
    run(pytester, WAITING, target("admission"), "--alluredir=allure").assert_outcomes(passed=1)
    (test,) = allure_results(pytester.path / "allure")
    assert test["status"] == "passed"
    assert WAITS - ROUNDED <= (test["stop"] - test["start"]) / 1000 < 3 * WAITS
    wait = test["steps"][0]
    assert wait["name"].startswith("wait 1.00 s: ")
    assert WAITS - ROUNDED <= (wait["stop"] - wait["start"]) / 1000 < 2 * WAITS
    assert test["start"] <= wait["start"] <= wait["stop"] <= test["stop"]
    (attachment,) = test["attachments"]
    assert "→ POST /instances/" in (pytester.path / "allure" / attachment["source"]).read_text()
    labels = {(label["name"], label["value"]) for label in test["labels"]}
    assert {("requirement", "AD-REPL-01"), ("verdict", "pass")} <= labels


def test_allure_gets_one_test_a_check_though_they_overlap(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SLOT, target(hopeless), "--alluredir=allure", "-v")
    tests = allure_results(pytester.path / "allure")
    assert {test["name"] for test in tests} == names_run(result)
    statuses = {test["status"] for test in tests}
    assert "failed" in statuses
    assert statuses <= {"failed", "broken"}  # broken: nothing could be arranged
    assert [len(test["attachments"]) for test in tests] == [1] * len(tests)


def test_workers_of_xdist_are_refused_in_one_sentence(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SLOT, target(hopeless), "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: checks overlap on one loop already: leave out -n, which would launch every check twice"
    ]


def test_an_unknown_target_is_named(pytester: pytest.Pytester) -> None:
    result = run(pytester, SLOT, target("nobody.toml"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: nobody.toml: no such descriptor; `holdfast init SPEC` writes one"])


def test_an_unknown_requirement_is_named(pytester: pytest.Pytester, hopeless: Path) -> None:
    result = run(pytester, SUITE, target(hopeless), "--holdfast-only=AD-VER-01", "--holdfast-only=AD-NOPE-01")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: AD-NOPE-01: no requirement, group or check of admission; *"])


def test_collecting_alone_starts_nothing(pytester: pytest.Pytester) -> None:
    nobody = '[target]\nname = "nobody"\nspec = "admission"\n[[node]]\nname = "a"\n'
    descriptor = pytester.makefile(".toml", nobody=f'{nobody}urls = {{ http = "http://127.0.0.1:1" }}')
    result = run(pytester, SLOT, target(descriptor), "--collect-only", "-q")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*test_admit_slot.py::test_a_valid_attempt*"])
