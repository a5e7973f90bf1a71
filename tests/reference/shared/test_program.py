"""The main program of a node as a process of its own: settings, violations, signals, exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.reference.shared.program import violations
from tests.reference.shared.mutants.table import all_mutants, excluded

ROOT = Path(__file__).parents[3]
NODE = (sys.executable, "-m", "tests.reference.shared.programs")


def start(*argv: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*NODE, *argv],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def test_a_signal_ends_a_node_with_zero() -> None:
    for signum in (signal.SIGTERM, signal.SIGINT):
        node = start()
        assert node.stdout
        assert json.loads(node.stdout.readline())["event"] == "listening"
        node.send_signal(signum)
        out, _ = node.communicate(timeout=20)
        assert json.loads(out)["message"] == "Stopped."
        assert node.returncode == 0


@pytest.mark.parametrize("how", ["flag", "environment", "violation", "violation by variable"])
def test_a_task_that_fails_ends_a_node_with_one_and_no_secret_in_its_log(how: str) -> None:
    argv, environment = {
        "flag": (("--fails",), {}),
        "environment": ((), {"FAILS": "yes"}),
        "violation": (("--violate", "XX-ONE-01/1"), {}),
        "violation by variable": ((), {"VIOLATE": "XX-ONE-01/1"}),
    }[how]
    node = start(*argv, **environment)
    out, err = node.communicate(timeout=20)
    told = [json.loads(line) for line in out.splitlines()]
    assert (node.returncode, err) == (1, "")
    assert [each["event"] for each in told] == ["listening", "log", "log"]
    assert told[0]["fails"] is True
    assert told[1]["message"].startswith("A background task failed. LookupError in work:")
    assert "secret" not in out


@pytest.mark.parametrize(
    ("argv", "environment", "sentence"),
    [
        (("--violate=XX-ONE-01/9",), {}, "sorry: No violation 'XX-ONE-01/9': known for this requirement: XX-ONE-01/1"),
        (("--colour",), {}, "sorry: Unknown argument '--colour'; the node takes --fails, --violate ID/n"),
        ((), {"FAILS": "perhaps"}, "sorry: FAILS='perhaps' must be true or false; change it in the environment"),
        ((), {"BREAKS": "1"}, "sorry: The node could not start: disk I/O error. Look at the disk."),
    ],
)
def test_what_keeps_a_node_from_starting_is_one_sentence(
    argv: tuple[str, ...], environment: dict[str, str], sentence: str
) -> None:
    node = start(*argv, **environment)
    out, err = node.communicate(timeout=20)
    assert (node.returncode, out, len(err.splitlines())) == (4, "", 1)
    assert err.startswith(sentence)


def test_violations_are_named_by_arguments_and_environment() -> None:
    argv = ["--a", "1", "--violate", "X/1,X/2", "--violate=X/3", "word"]
    assert violations(argv, {"VIOLATE": "Y/1 Y/2"}) == (["--a", "1", "word"], ["Y/1", "Y/2", "X/1", "X/2", "X/3"])
    assert violations(["--violate"], {}) == ([], [])


def test_the_table_knows_its_mutants_and_where_they_break_a_rule() -> None:
    (mutant,) = all_mutants().values()
    (seam,) = mutant.seams()
    assert (mutant.name, mutant.also, mutant.place.file.name) == ("XX-ONE-01/1", ("XX-TWO-01",), "one.py")
    assert (seam.kind, seam.name, seam.change) == ("setting", "fails", "False becomes True")
    assert excluded() == {"XX-ONE-01/2": "Nobody can see it."}
