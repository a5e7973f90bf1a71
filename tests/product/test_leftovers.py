"""However the runner ends, the machine is as it was before, and what was found so far is reported."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.reports.files import read_events
from holdfast.run.events import CheckFinished, PlanMade
from tests.product.leftovers import Standing, look
from tests.product.running import SOON, TIMEOUT, holdfast, started, until

# Waits for most of a rate window while other checks end at once: there is a middle to be interrupted in.
LONG, SHORT = "AD-RATE-03", "AD-ADMIT-01"
WORDS = ("run", "admission", "--only", LONG, "--only", SHORT, "--results", "results")
ANSWERED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def short_checks_have_ended(path: Path) -> bool:
    events = list(read_events(path)) if path.exists() else []
    rows = [row for event in events if isinstance(event, PlanMade) for row in event.rows if row.id == SHORT]
    planned = {check for row in rows for part in row.parts for check in part.checks}
    return bool(planned) and planned <= {event.check for event in events if isinstance(event, CheckFinished)}


def in_the_middle(folder: Path, runner: subprocess.Popen[str]) -> Standing:
    """Some checks have ended, others wait; what is there now must be gone later."""
    until(lambda: short_checks_have_ended(folder / "results" / "events.jsonl"), TIMEOUT, "the short checks have ended")
    standing = look(folder / "scratch")
    assert runner.pid in {process.pid for process in standing.processes}
    assert len(standing.processes) >= 6, "the runner, its guardian, three nodes and their Redis"
    assert len(standing.sockets) >= 4, "three nodes and their Redis"
    assert len(standing.folders) == 1
    return standing


def assert_all_gone(folder: Path, before: Standing) -> None:
    until(lambda: not before.left() and not look(folder / "scratch"), SOON, "the machine is as it was before")


@pytest.mark.parametrize("signum", ANSWERED)
def test_a_runner_that_is_told_to_stop_leaves_nothing_but_its_report(tmp_path: Path, signum: signal.Signals) -> None:
    with started(tmp_path, *WORDS) as runner:
        before = in_the_middle(tmp_path, runner)
        runner.send_signal(signum)
        output, _ = runner.communicate(timeout=SOON)
        assert_all_gone(tmp_path, before)

    assert runner.returncode == 2
    assert "Traceback" not in output
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert results["interrupted"] == signum.name
    verdicts = {row["id"]: row["verdict"] for row in results["requirements"]}
    assert verdicts == {SHORT: "pass", LONG: "inconclusive"}
    assert results["leftovers"] == []
    for name in ("report.html", "junit.xml", "ctrf.json", "allure-results"):
        assert (tmp_path / "results" / name).exists()


def test_an_impatient_user_gets_the_same_report(tmp_path: Path) -> None:
    with started(tmp_path, *WORDS) as runner:
        before = in_the_middle(tmp_path, runner)
        for _ in range(5):
            runner.send_signal(signal.SIGINT)
            time.sleep(0.05)
        output, _ = runner.communicate(timeout=SOON)
        assert_all_gone(tmp_path, before)

    assert runner.returncode == 2
    assert "Traceback" not in output
    assert json.loads((tmp_path / "results" / "results.json").read_text())["interrupted"] == "SIGINT"


def test_a_killed_runner_leaves_nothing_but_its_events_which_can_be_reported(tmp_path: Path) -> None:
    with started(tmp_path, *WORDS) as runner:
        before = in_the_middle(tmp_path, runner)
        runner.kill()
        runner.wait(SOON)
        assert_all_gone(tmp_path, before)

    assert not (tmp_path / "results" / "results.json").exists()
    told = holdfast(tmp_path, "report", "results")
    assert (told.code, told.err) == (2, "")
    assert told.results()["interrupted"] == "cut off"
    assert told.verdicts() == {SHORT: "pass", LONG: "inconclusive"}


@pytest.mark.parametrize("signum", [*ANSWERED, signal.SIGKILL])
def test_a_run_that_is_stopped_while_it_starts_leaves_nothing(tmp_path: Path, signum: signal.Signals) -> None:
    with started(tmp_path, *WORDS) as runner:
        until(lambda: bool(look(tmp_path / "scratch").folders), TIMEOUT, "the run has a folder")
        before = look(tmp_path / "scratch")
        runner.send_signal(signum)
        output, _ = runner.communicate(timeout=SOON)
        assert_all_gone(tmp_path, before)
    assert "Traceback" not in output
