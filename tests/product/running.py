"""The command `holdfast` as a user starts it: in a process of its own, in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from holdfast.reports import schema

HOLDFAST = Path(sys.executable).with_name("holdfast")
TIMEOUT = 120.0
SCHEMA = json.loads((schema.FOLDER / "results.schema.json").read_text("utf-8"))
# A runner that got a signal must have ended by then, and all that it started.
SOON = 15.0


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    folder: Path

    @property
    def text(self) -> str:
        return self.out + self.err

    def results(self) -> dict[str, Any]:
        """The document of results, which obeys its schema whatever the run, the target and the faults were."""
        document: dict[str, Any] = json.loads((self.folder / "results" / "results.json").read_text("utf-8"))
        Draft202012Validator(SCHEMA).validate(document)
        return document

    def verdicts(self) -> dict[str, str]:
        return {row["id"]: row["verdict"] for row in self.results()["requirements"]}


def environment(folder: Path) -> dict[str, str]:
    """Return our environment with a TMPDIR that marks every process of the run, also one that left its parents."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(scratch), "NO_COLOR": "1", "COLUMNS": "120"}


def holdfast(folder: Path, *words: str, within: float = TIMEOUT) -> Ended:
    done = subprocess.run(
        [HOLDFAST, *words],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, folder)


def run(folder: Path, *words: str, only: tuple[str, ...] = (), within: float = TIMEOUT) -> Ended:
    chosen = [word for id_ in only for word in ("--only", id_)]
    return holdfast(folder, "run", "admission", *chosen, "--results", "results", *words, within=within)


def _heed_signals() -> None:
    """As in a terminal: whoever started us in the background had SIGINT ignored, and that would be inherited."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command while the test does something to it, and kill it when the test ends."""
    with subprocess.Popen(
        [HOLDFAST, *words],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_heed_signals,  # noqa: PLW1509 - this process has no other thread
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
