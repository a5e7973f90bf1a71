"""The generator against a server that stalls once: our percentile is the truth, where Locust shows milliseconds."""

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.load.campaign import parse
from holdfast.load.extra import LoadError, generator, require_locust
from holdfast.load.fold import Folded, read
from holdfast.load.plan import plan_of
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load
from tests.load.stalling import stalling

RATE, SECONDS, AFTER, STALL = 100, 6, 2.0, 2.0
TEXT = f"""
[campaign.X1]
title = "A stall"
story = "The server stalls once."
user = "stampede"
arrivals = {{ rate = {RATE}, seconds = {SECONDS} }}
parameters = {{ capacity = 1000 }}
rules = ["capacity"]
"""
# Of 600 requests 200 wait, evenly between nothing and 2 s; a tenth of all, 60, wait longest.
TRUE_P90 = STALL - (0.1 * RATE * SECONDS) / RATE


def generated(url: str, folder: Path, *more: str) -> Folded:
    target = load(builtin_path("admission")).at_scale(1)
    out = folder / "generator.jsonl"
    plan = plan_of(parse(TEXT)["X1"], target, target.timings(builtin("admission")), {"a": {"http": url}}, out)
    plan.write(folder / "plan.json")
    words = generator("admission", [*(more or ("-u", "1", "-r", "1")), "--plan", str(folder / "plan.json")])
    subprocess.run(words, check=False, timeout=90, capture_output=True)
    return read(out)


def closed_p90(url: str, folder: Path) -> float:
    """Returns the P90 that Locust shows for its own, closed users, in seconds."""
    file = Path(__file__).parent / "closed.py"
    words = [sys.executable, "-m", "locust", "-f", str(file), "--headless", "--only-summary", "--skip-log", "-H", url]
    words += ["-u", "10", "-r", "10", "-t", f"{SECONDS}s", "--csv", str(folder / "closed")]
    subprocess.run(words, check=False, timeout=90, capture_output=True)
    with (folder / "closed_stats.csv").open() as lines:
        return next(float(row["90%"]) for row in csv.DictReader(lines) if row["Name"] == "connect") / 1000


def test_a_stall_shows_in_our_percentile_and_not_in_locusts(tmp_path: Path) -> None:
    with stalling(AFTER, STALL) as server:
        folded = generated(server.url, tmp_path)
    with stalling(AFTER, STALL) as server:
        theirs = closed_p90(server.url, tmp_path)
    assert folded.missing() == []
    assert folded.counts.starts == RATE * SECONDS
    assert folded.latencies("connect").at(0.9) == pytest.approx(TRUE_P90, rel=0.05)
    assert theirs < 0.1


def test_four_workers_make_the_same_campaign_as_one(tmp_path: Path) -> None:
    more = ("--processes", "4", "--master-bind-host", "127.0.0.1", "--master-bind-port", "27557")
    with stalling(AFTER, 0.0) as server:
        folded = generated(server.url, tmp_path, *more, "--master-port", "27557", "-u", "4", "-r", "4")
    assert folded.missing() == []
    assert (folded.expected, folded.counts.starts) == (4, RATE * SECONDS)
    assert folded.outcomes("connect") == {"success": RATE * SECONDS}


def test_a_dead_target_is_one_sentence(tmp_path: Path) -> None:
    folded = generated("http://127.0.0.1:9", tmp_path)
    assert len(folded.missing()) == 1
    assert folded.missing()[0].startswith("could not arrange it: PUT /admin/instances/")


def test_locust_is_not_imported_here() -> None:
    assert not any(name.split(".")[0] in ("locust", "gevent") for name in sys.modules)


def test_a_plain_install_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(LoadError, match=r"holdfast load needs Locust .*pip install"):
        require_locust()
