"""`holdfast serve` and `holdfast run --target`: the two commands that meet only through a descriptor."""

import shlex
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.reference.admission.mutants.table import all_mutants
from tests.product.leftovers import look
from tests.product.running import HOLDFAST, SOON, environment, holdfast, run, started, until

# The whole profile of a target that we may not start anew: what wants it for itself runs one by one, at the end.
WHOLE_PROFILE = 600.0
# AD-OBS-01 reads whole logs, and AD-ADMIT-06 fills them with the traces of hostile requests.
STANDING_TOGETHER = ("AD-ADMIT-01", "AD-STATE-01", "AD-SEC-05", "AD-ADMIT-06", "AD-OBS-01")


@contextmanager
def served(folder: Path, *words: str, key: str = "admission") -> Iterator[str]:
    """Serve, yield the path of the descriptor, and make sure that the command ends when it gets SIGTERM."""
    descriptor = folder / "served.toml"
    with started(folder, "serve", key, *words, "--descriptor", str(descriptor)) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.endswith(f": holdfast run {key} --target {descriptor}\n"), said + server.stdout.read()
        yield str(descriptor)
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0
    assert not descriptor.exists(), "what it describes is gone"


def read_descriptor(server: subprocess.Popen[str]) -> str:
    """Return the descriptor, which is printed once all nodes are ready.

    An empty line follows it, and each of its sections; `[dialect]` is the last.
    """
    assert server.stdout is not None
    lines: list[str] = []
    while not (lines and lines[-1] == "\n" and "[dialect]\n" in lines):
        lines.append(server.stdout.readline())
        assert lines[-1], f"serve ended early: {''.join(lines)}"
    return "".join(lines)


def test_a_served_mutant_fails_exactly_the_row_that_it_breaks(tmp_path: Path) -> None:
    with served(tmp_path, "--violate", "AD-RATE-03/1") as descriptor:
        ended = run(tmp_path, "--target", descriptor, within=WHOLE_PROFILE)
        assert ended.code == 1, ended.text
        verdicts = ended.verdicts()
        failed = {id_ for id_, verdict in verdicts.items() if verdict in ("fail", "warn", "error")}
        assert failed <= {"AD-RATE-03", *all_mutants()["AD-RATE-03/1"].also}, ended.text
        assert verdicts["AD-RATE-03"] == "fail"
        assert sum(verdict == "pass" for verdict in verdicts.values()) > len(verdicts) / 2

        (row,) = [row for row in ended.results()["requirements"] if row["id"] == "AD-RATE-03"]
        finding = row["finding"]
        assert finding["expected"]
        assert finding["seen"]
        calls = [line for line in finding["transcript"] if line["dir"] == "→"]
        assert len(calls) >= 6
        assert [line["t"] for line in calls] == sorted(line["t"] for line in calls)
        assert_it_fails_again(tmp_path, finding["command"])


def assert_it_fails_again(folder: Path, command: str) -> None:
    program, *words = shlex.split(command)
    assert program == "holdfast"
    again = subprocess.run(
        [HOLDFAST, *words], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert "AD-RATE-03" in again.stdout


@pytest.mark.parametrize("nodes", ["1", "3"])
def test_a_clean_server_passes_with_the_profile_that_its_descriptor_declares(tmp_path: Path, nodes: str) -> None:
    with served(tmp_path, "--nodes", nodes) as descriptor:
        ended = run(tmp_path, "--target", descriptor, only=STANDING_TOGETHER)
    assert ended.code == 0, ended.text
    results = ended.results()
    assert results["profile"] == "store"
    assert set(ended.verdicts().values()) <= {"pass", "partial"}
    # AD-OBS-01 reads whole logs, so it waits until the others are forgotten: told in the plan and when it comes.
    alone, (wait,) = results["plan"]["alone"], results["waits"]
    assert wait["for_s"] == alone["settle_s"] > 0
    assert f" {alone['checks']} of them alone after settling for {wait['for_s']} s," in ended.out
    assert f"\nwaiting {wait['for_s']} s for the target to forget the checks so far" in ended.out


def test_an_unknown_mutant_is_refused_in_one_sentence(tmp_path: Path) -> None:
    ended = holdfast(tmp_path, "serve", "admission", "--violate", "AD-NOPE-01/1")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "holdfast: AD-NOPE-01/1: no mutant of admission; write it as ID/n, e.g. AD-ADMIT-01/1\n"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_what_is_served_goes_with_the_server(tmp_path: Path, signum: signal.Signals) -> None:
    with started(tmp_path, "serve", "admission", "--nodes", "1") as server:
        read_descriptor(server)
        before = look(tmp_path / "scratch")
        assert len(before.processes) >= 4, "the server, its guardian, a node and its Redis"
        server.send_signal(signum)
        server.wait(SOON)
        until(lambda: not before.left() and not look(tmp_path / "scratch"), SOON, "the machine is as it was before")


def test_served_nodes_behind_mutual_tls_say_where_their_bundles_are(tmp_path: Path) -> None:
    with served(tmp_path, "--nodes", "1", key="lockd") as descriptor:
        told = tomllib.loads(Path(descriptor).read_text())["credentials"]
        assert all(Path(told[name]).is_file() for name in ("ca", "tc_client_bundle"))
        assert Path(told["server_bundle"].replace("{node}", "a")).is_file()
        ended = holdfast(tmp_path, "doctor", descriptor)
        assert ended.code == 0, ended.text
    assert not Path(told["ca"]).exists()


def test_a_descriptor_that_somebody_wrote_by_hand_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("# hours of work\n")
    ended = holdfast(tmp_path, "serve", "admission", "--descriptor", "mine.toml")
    said = "--descriptor mine.toml: exists already, and is not of holdfast serve; choose another name"
    assert (ended.code, ended.err) == (2, f"holdfast: {said}\n")
    assert (tmp_path / "mine.toml").read_text() == "# hours of work\n"
