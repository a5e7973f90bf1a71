"""Several specs with one command: one display, one summary, one index, one exit code; and however it ends, all ends."""

import json
import os
import shutil
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from holdfast.reports.files import read_events
from holdfast.run.events import CheckFinished, PlanMade
from tests.product.leftovers import Standing, look
from tests.product.running import SOON, TIMEOUT, Ended, holdfast, started, until

ADMIT, JOIN = "AD-ADMIT-01", "TC-JOIN-01"
BOTH = ("--only", ADMIT, "--only", JOIN)
# Waits for most of a rate window, or for several leases: there is a middle to be interrupted in.
LONG = {"admission": "AD-RATE-03", "lockd": "TC-STEP-01"}
WORDS = (
    "run",
    "admission",
    "lockd",
    *BOTH,
    *(word for row in LONG.values() for word in ("--only", row)),
    "--jobs",
    "2",
)


class Page(HTMLParser):
    """Links, text and tags of a page; a tag that is never closed makes the page unbalanced."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a":
            self.links.append(given["href"] or "")
        self.fetched += [given[name] or "" for name in ("src", "srcset", "data") if name in given]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words += data.split()


def page(folder: Path) -> Page:
    return Page((folder / "results" / "index.html").read_text())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("both")
    # What a run of one spec and a kill matrix left there, as after README's first demo.
    for old in ("results", "results/mutants"):
        (folder / old).mkdir()
        (folder / old / "events.jsonl").write_text('{"event": "run.started", "schema": 1}\n')
    return holdfast(folder, "run", "admission", "lockd", *BOTH, "--jobs", "2", "--results", "results")


def test_each_spec_has_its_results_and_its_reports(both: Ended) -> None:
    assert both.code == 0, both.text
    for key, row in (("admission", ADMIT), ("lockd", JOIN)):
        document = json.loads((both.folder / "results" / key / "results.json").read_text())
        assert {each["id"]: each["verdict"] for each in document["requirements"]} == {row: "pass"}
        assert document["command"].startswith("holdfast run admission lockd --only AD-ADMIT-01")
        for name in ("report.html", "junit.xml", "ctrf.json", "allure-results"):
            assert (both.folder / "results" / key / name).exists()


def test_one_summary_tells_of_both_and_of_what_they_cost(both: Ended) -> None:
    assert both.err == ""
    lines = both.out.splitlines()
    assert sum(line.startswith("holdfast ") for line in lines) == 2
    assert {line.partition(":")[0] for line in lines if " plan: " in line} == {"admission plan", "lockd plan"}
    *_, admission, lockd, cost, ratio, code, report = lines
    assert admission.startswith("admission  1 pass: exit 0, narrowed: --only AD-ADMIT-01, wall ")
    assert lockd.startswith(f"lockd      1 pass: exit 0, narrowed: --only {JOIN}, wall ")
    assert cost.startswith("all: wall ")
    assert ", CPU " in cost
    assert ratio.endswith(" times max(longest check, CPU ÷ cores)")
    assert (code, report) == ("exit 0", "report results/index.html")


def test_the_index_leads_to_every_report_and_needs_nothing_else(both: Ended) -> None:
    index = page(both.folder)
    assert index.links == ["admission/report.html", "lockd/report.html"]
    assert all((both.folder / "results" / link).is_file() for link in index.links)
    assert index.fetched == []
    assert "Content-Security-Policy" in (both.folder / "results" / "index.html").read_text()
    text = " ".join(index.words)
    assert "exit 0" in text
    assert text.count("1 pass") == 2


def test_the_reports_of_all_specs_and_the_index_are_written_again(both: Ended, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(both.folder / "results", results)
    before = (results / "index.html").read_text()
    for file in (results / "index.html", *results.glob("*/report.html"), *results.glob("*/results.json")):
        file.unlink()
    done = holdfast(tmp_path, "report", "results")
    assert (done.code, done.err) == (0, "")
    *of_each, index = done.out.splitlines()
    assert [line.rpartition(" ")[2] for line in of_each] == ["results/admission", "results/lockd"]
    assert index == "wrote results/index.html"
    assert (results / "index.html").read_text() == before, "wall and CPU time of the command too"
    assert all((results / link).is_file() for link in page(tmp_path).links)
    (results / "command.json").unlink()
    assert holdfast(tmp_path, "report", "results").code == 0, "a command that was killed has left none"
    assert page(tmp_path).links == ["admission/report.html", "lockd/report.html"]
    assert "exit 0" in " ".join(page(tmp_path).words)


def test_a_folder_without_a_run_has_nothing_to_report(tmp_path: Path) -> None:
    (tmp_path / "empty" / "sub").mkdir(parents=True)
    done = holdfast(tmp_path, "report", "empty")
    assert done.code == 2
    assert "Traceback" not in done.text


def test_json_of_several_specs_is_one_document(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "run", "admission", "lockd", *BOTH, "--jobs", "1", "--results", "results", "--json")
    assert (done.code, done.err) == (0, "")
    document: dict[str, Any] = json.loads(done.out)
    assert list(document["specs"]) == ["admission", "lockd"]
    assert document["specs"]["lockd"] == json.loads((tmp_path / "results" / "lockd" / "results.json").read_text())
    assert document["exit"] == 0
    assert document["summary"]["pass"] == 2
    assert document["problems"] == {}
    assert document["cpu_s"] > sum(spec["cpu_s"] for spec in document["specs"].values()) * 0.9
    least = max(document["longest_check"]["duration_s"], document["cpu_s"] / document["cores"])
    assert document["least_wall_s"] == pytest.approx(least, abs=0.01)
    assert document["wall_ratio"] == pytest.approx(document["wall_s"] / least, abs=0.01)
    walls = [spec["wall_s"] for spec in document["specs"].values()]
    assert document["wall_s"] > sum(walls), "--jobs 1 is one after the other"


def test_json_of_one_spec_is_its_results_as_ever(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "run", "admission", "--only", ADMIT, "--results", "results", "--json")
    document = json.loads(done.out)
    assert document == json.loads((tmp_path / "results" / "results.json").read_text())
    assert document["cpu_s"] > 0
    assert document["wall_ratio"] >= 0.9
    assert not (tmp_path / "results" / "index.html").exists()


def test_a_name_that_no_spec_has_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "run", "admission", "lockd", "--only", ADMIT, "--only", "XX-NONE")
    assert done.code == 2
    assert done.err.startswith("holdfast: XX-NONE: no requirement, group or check of admission, lockd")
    assert not list(tmp_path.glob("holdfast-results/*"))


def test_mutants_of_several_specs_are_one_matrix_each_and_one_exit_code(tmp_path: Path) -> None:
    words = ("--only", "AD-VER-01/3", "--only", "TC-JOIN-01/1", "--results", "results")
    done = holdfast(tmp_path, "mutants", "admission", "lockd", *words)
    assert done.code == 0, done.text
    assert done.out.count("1 mutants: 1 killed, 0 survived") == 2
    assert page(tmp_path).links == ["admission/report.html", "lockd/report.html"]


def short_ones_have_ended(folder: Path) -> bool:
    """The short checks of both specs have ended, and their long ones run."""
    for key, row in (("admission", ADMIT), ("lockd", JOIN)):
        path = folder / "results" / key / "events.jsonl"
        events = list(read_events(path)) if path.exists() else []
        rows = [each for event in events if isinstance(event, PlanMade) for each in event.rows if each.id == row]
        planned = {check for each in rows for part in each.parts for check in part.checks}
        if not planned or not planned <= {event.check for event in events if isinstance(event, CheckFinished)}:
            return False
    return True


def in_the_middle(folder: Path, parent: subprocess.Popen[str], further: int = 0) -> Standing:
    until(lambda: short_ones_have_ended(folder), TIMEOUT, "the short checks of both specs have ended")
    standing = look(folder / "scratch")
    assert parent.pid in {process.pid for process in standing.processes}
    assert sum("holdfast.cli.runner" in process.command for process in standing.processes) == 2 + further
    assert len(standing.folders) == 2, "one of each guardian"
    return standing


def assert_all_gone(folder: Path, before: Standing) -> None:
    until(lambda: not before.left() and not look(folder / "scratch"), SOON, "the machine is as it was before")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_stop_ends_every_runner_and_reports(tmp_path: Path, signum: signal.Signals) -> None:
    with started(tmp_path, *WORDS, "--results", "results") as parent:
        before = in_the_middle(tmp_path, parent)
        parent.send_signal(signum)
        parent.send_signal(signum)
        output, _ = parent.communicate(timeout=2 * SOON)
        assert_all_gone(tmp_path, before)

    assert parent.returncode == 2
    assert "Traceback" not in output
    assert output.endswith("exit 2\nreport results/index.html\n")
    for key, row in (("admission", ADMIT), ("lockd", JOIN)):
        document = json.loads((tmp_path / "results" / key / "results.json").read_text())
        assert document["interrupted"] == signum.name
        verdicts = {each["id"]: each["verdict"] for each in document["requirements"]}
        assert verdicts == {row: "pass", LONG[key]: "inconclusive"}
        assert document["leftovers"] == []


def test_a_command_that_is_killed_leaves_nothing_but_its_events(tmp_path: Path) -> None:
    with started(tmp_path, *WORDS, "--results", "results") as parent:
        before = in_the_middle(tmp_path, parent)
        parent.kill()
        parent.wait(SOON)
        assert_all_gone(tmp_path, before)
    told = holdfast(tmp_path, "report", "results/lockd")
    assert (told.code, told.err) == (2, "")


def test_a_runner_that_is_killed_takes_nobody_with_it_and_what_it_found_is_reported(tmp_path: Path) -> None:
    with started(tmp_path, *WORDS, "--results", "results") as parent:
        before = in_the_middle(tmp_path, parent)
        victim = next(p.pid for p in before.processes if "holdfast.cli.runner" in p.command and is_of("lockd", p.pid))
        os.kill(victim, signal.SIGKILL)
        output, _ = parent.communicate(timeout=TIMEOUT)
        assert_all_gone(tmp_path, before)

    assert parent.returncode == 2
    assert "Traceback" not in output
    assert "holdfast: lockd: its runner was ended by signal 9; what it had found is reported" in output
    results = {key: json.loads((tmp_path / "results" / key / "results.json").read_text()) for key in LONG}
    assert results["admission"]["summary"]["exit"] == 0, "the other spec was run to its end"
    assert results["lockd"]["interrupted"] == "cut off"
    assert "its runner was ended" in " ".join(page(tmp_path).words)


def test_stress_keeps_as_many_cores_busy_as_it_says_however_many_runners_there_are(tmp_path: Path) -> None:
    with started(tmp_path, *WORDS, "--stress", "1", "--results", "results") as parent:
        before = in_the_middle(tmp_path, parent, further=1)
        assert sum("cli.runner stress" in process.command for process in before.processes) == 1
        parent.send_signal(signal.SIGINT)
        parent.communicate(timeout=2 * SOON)
        assert_all_gone(tmp_path, before)


def is_of(key: str, pid: int) -> bool:
    """Whether this runner writes into the results of that spec."""
    return any(f"/{key}/" in str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_while_it_starts_leaves_nothing(tmp_path: Path, signum: signal.Signals) -> None:
    with started(tmp_path, *WORDS, "--results", "results") as parent:
        until(lambda: bool(look(tmp_path / "scratch").folders), TIMEOUT, "a runner has a folder")
        before = look(tmp_path / "scratch")
        parent.send_signal(signum)
        output, _ = parent.communicate(timeout=2 * SOON)
        assert_all_gone(tmp_path, before)
    assert "Traceback" not in output
