"""What CI draws anew for each commit, and what runs at night: `python -m tests.ci mutants`, `exec`, `storms` and so on.

Everything that judges a target runs in full on every commit: lint, types, all tests, every check of `holdfast run` and
every scenario on the relay. What only measures the suite, or repeats it on another engine or launcher, is a sample, of
the same size however many specs there are. The seed comes from the commit, so that a commit always gets the same
sample and the next one another; it is printed, and HOLDFAST_CI_SEED=… repeats it. `nightly` leaves nothing out.
"""

# ruff: noqa: T201 - it reports on its standard output

import datetime as dt
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.chaos.engines import find_toxiproxy
from holdfast.load.campaign import FOLDER, campaigns
from holdfast.run.suite import checks_of
from holdfast.spec.catalogue import builtin_keys
from holdfast.target.deployment import StartError

ROOT = Path(__file__).parent.parent
RESULTS = "holdfast-results-ci"
# Shared by all specs, so that CI does not grow with their number.
MUTANTS, STORMS, ON_TOXIPROXY = 48, 6, 8
STRANGER_SCENARIOS, STRANGER_STORMS = 3, 2
LEAST = 2
AT_NIGHT_STORMS = 200
AT_NIGHT_STRANGERS = 10
WALK_SEEDS, UNTIL_COVERED = 3, ("--for", "10m", "--until", "covered")
_SCENARIO = re.compile(r"::test_([a-z]+)0*(\d+)_")

Run = Callable[[Sequence[str]], int]


def seed() -> tuple[int, str]:
    """The seed and where it comes from: HOLDFAST_CI_SEED, else the commit, else (in an sdist) the day."""
    if given := os.environ.get("HOLDFAST_CI_SEED"):
        return int(given), "HOLDFAST_CI_SEED"
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return int(found.stdout[:8], 16) % 1_000_000, f"commit {found.stdout[:12]}"
    today = dt.datetime.now(dt.UTC).date()
    return today.toordinal(), f"the day {today}"


def share(total: int, keys: Sequence[str]) -> int:
    """How many of all each spec gets."""
    return max(LEAST, total // len(keys))


def mutants(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """A sample of each kill matrix."""
    return [
        ["mutants", key, "--sample", str(share(MUTANTS, keys)), "--seed", str(drawn), *_into("mutants", key)]
        for key in keys
    ]


def launched(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """One suite in turn, with every node started as a program of its own."""
    key = keys[drawn % len(keys)]
    return [["run", key, "--launcher", "exec", *_into("exec", key)]]


def storms(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """A few storms of each spec."""
    return [
        ["chaos", key, "--random", str(share(STORMS, keys)), "--seed", str(drawn), *_into("storms", key)]
        for key in keys
    ]


def toxiproxy(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """A few scenarios of each spec on a real Toxiproxy; nothing, said loudly, where there is none."""
    try:
        find_toxiproxy()
    except StartError as problem:
        print(f"!!! SCENARIOS NOT RUN ON A REAL TOXIPROXY: {problem}", file=sys.stderr)
        return []
    draw = random.Random(drawn)
    return [
        ["chaos", key, *_drawn(draw, scenarios(key), share(ON_TOXIPROXY, keys)), *_on_toxiproxy(key)] for key in keys
    ]


def stranger(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """One suite in turn, with a few scenarios and storms of it, in the dialects of one seed.

    It is another suite than the one that `exec` has, where there are several.
    """
    key = keys[(drawn + 1) % len(keys)]
    few = _drawn(random.Random(drawn), scenarios(key), STRANGER_SCENARIOS)
    return _in_dialects(drawn, key, few, STRANGER_STORMS)


def nightly(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """Everything: whole matrices, the spec's own time, every scenario on both engines, many storms, ten strangers."""
    found = [["run", "--time-scale", "1", *_into("headline", "all")]]
    for number, key in enumerate(keys):
        dealt = len(range(number, AT_NIGHT_STORMS, len(keys)))
        found += [
            ["mutants", key, *_into("mutants", key)],
            ["run", key, "--launcher", "exec", *_into("exec", key)],
            ["chaos", key, *_into("relay", key)],
            ["chaos", key, "--random", str(dealt), "--seed", str(drawn), *_into("storms", key)],
        ]
    for each_seed in range(drawn, drawn + AT_NIGHT_STRANGERS):
        found += [command for key in keys for command in _in_dialects(each_seed, key, [], STRANGER_STORMS)]
    found += [["load", key, *_named(key), "--time-scale", "1", *_into("load", key)] for key in loaded(keys)]
    return found + [["chaos", key, *_on_toxiproxy(key)] for key in keys if toxiproxy(drawn, [key])]


def walks(drawn: int, keys: Sequence[str]) -> list[list[str]]:
    """Long walks of each spec that has a model, with seeds of their own, each until every pair was reached."""
    modelled = [key for key in keys if any(spec.walks for spec in checks_of(key, naming="walk_steps").values())]
    return [
        ["walk", key, "--seed", str(drawn + each), *UNTIL_COVERED, *_into(f"walks-{each}", key)]
        for key in modelled
        for each in range(WALK_SEEDS)
    ]


def loaded(keys: Sequence[str]) -> list[str]:
    """The specs that have load campaigns."""
    return [key for key in keys if (FOLDER / f"{key}.toml").is_file()]


def _named(key: str) -> list[str]:
    return [word for name in campaigns(key) for word in ("--campaign", name)]


def scenarios(key: str) -> list[str]:
    """`C1` to `C14`, by the names of the tests; storms have none."""
    found = (_SCENARIO.search(check) for check in checks_of(key, scenarios=True))
    return sorted({each[1].upper() + each[2] for each in found if each})


def _drawn(draw: random.Random, names: Sequence[str], number: int) -> list[str]:
    return sorted(draw.sample(names, min(number, len(names))))


def _in_dialects(drawn: int, key: str, scenarios: Sequence[str], storms: int) -> list[list[str]]:
    """The suite of a spec, these scenarios (all of them if none is named) and storms, with `--stranger`."""
    speaks, drawn_storms = ["--stranger", str(drawn)], ["--random", str(storms), "--seed", str(drawn)]
    return [
        ["run", key, *speaks, *_into(f"stranger-{drawn}", key)],
        ["chaos", key, *scenarios, *speaks, *_into(f"stranger-{drawn}-scenarios", key)],
        ["chaos", key, *drawn_storms, *speaks, *_into(f"stranger-{drawn}-storms", key)],
    ]


def _on_toxiproxy(key: str) -> list[str]:
    return ["--engine", "toxiproxy", *_into("toxiproxy", key)]


def _into(part: str, key: str) -> list[str]:
    return ["--results", f"{RESULTS}/{part}/{key}"]


PARTS = {
    "mutants": mutants,
    "exec": launched,
    "storms": storms,
    "toxiproxy": toxiproxy,
    "stranger": stranger,
    "walks": walks,
    "nightly": nightly,
}


def main(words: Sequence[str], run: Run) -> int:
    """Runs the commands of one part after the other, also after one that failed; returns the worst of their codes."""
    if len(words) != 1 or words[0] not in PARTS:
        print(f"name one of {', '.join(PARTS)}", file=sys.stderr)
        return 2
    drawn, source = seed()
    print(f"seed {drawn}, from {source}; HOLDFAST_CI_SEED={drawn} repeats what is drawn")
    worst, took = 0, []
    for command in PARTS[words[0]](drawn, builtin_keys()):
        print(f"$ holdfast {' '.join(command)}", flush=True)
        began = time.monotonic()
        code = run(command)
        took.append(f"{time.monotonic() - began:6.0f} s  exit {code}  holdfast {' '.join(command)}")
        worst = max(worst, code)
    print("\n".join(took))
    return worst


def _holdfast(command: Sequence[str]) -> int:
    return subprocess.run([Path(sys.executable).with_name("holdfast"), *command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], _holdfast))
