"""What a request costs the generator: our user against a plain FastHttpUser, and wrk where it is there.

All send the same request to the same server, at the same moments: as many at once as the plain one has users, as often.
(What one wake-up of the process costs would else be shared by ten requests of a closed user and borne by each of ours.)
What counts is the processor time of the process that makes the load, from
the first request to the last: in a closed user that of the whole test, in ours that of the parts that workers tell.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from holdfast.load.campaign import parse
from holdfast.load.fold import read
from holdfast.load.plan import plan_of
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load

HERE = Path(__file__).parent
ROUNDS, SECONDS, RATE, USERS = 3, 8, 1000, 10
AT = [turn * USERS / RATE for turn in range(SECONDS * RATE // USERS) for _ in range(USERS)]
CAMPAIGN = f"""
[campaign.B1]
title = "Requests"
story = "Requests that cost the server nothing."
user = "direct"
arrivals = {{ shape = "replayed", at = {AT} }}
parameters = {{ capacity = 1 }}
rules = ["capacity"]
"""


@dataclass(frozen=True)
class Seen:
    """Requests a second of processor time; `wrk` is 0 where it is not there."""

    ours: float
    plain: float
    wrk: float

    @property
    def ratio(self) -> float:
        return self.ours / self.plain


def compare() -> tuple[Seen, list[Seen]]:
    """Returns the medians of some rounds, and the rounds."""
    with _server() as url, tempfile.TemporaryDirectory(prefix="holdfast-bench-") as place:
        rounds = [Seen(_ours(url, Path(place)), _plain(url, Path(place)), _wrk(url)) for _ in range(ROUNDS)]
    return Seen(*(median(getattr(each, name) for each in rounds) for name in ("ours", "plain", "wrk"))), rounds


@contextmanager
def _server() -> Iterator[str]:
    words = [sys.executable, str(HERE / "fixed.py")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def _locust(file: str, *more: str) -> list[str]:
    words = [sys.executable, "-m", "locust", "-f", str(HERE / file), "--headless", "--only-summary", "--skip-log"]
    return [*words, *more]


def _ours(url: str, folder: Path) -> float:
    target, out = load(builtin_path("admission")).at_scale(1), folder / "ours.jsonl"
    out.unlink(missing_ok=True)
    timings = target.timings(builtin("admission"))
    plan_of(parse(CAMPAIGN)["B1"], target, timings, {"a": {"http": url}}, out).write(folder / "plan.json")
    words = _locust("our_user.py", "-u", "1", "-r", "1", "--plan", str(folder / "plan.json"))
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    parts = [part for line in out.read_text("utf-8").splitlines() if (part := json.loads(line))["kind"] == "part"]
    cpu = sum(part["usage"]["cpu"] * part["usage"]["wall_s"] for part in parts)
    folded = read(out)
    if missing := folded.missing() + folded.notes:
        raise RuntimeError(missing[0])
    return float(folded.counts.ended / cpu)


def _plain(url: str, folder: Path) -> float:
    told = folder / "plain.json"
    words = _locust("plain_user.py", "-H", url, "-u", str(USERS), "-r", str(USERS), "-t", f"{SECONDS}s")
    environment = {**os.environ, "HOLDFAST_BENCH_OUT": str(told), "HOLDFAST_BENCH_RATE": f"{RATE / USERS}"}
    subprocess.run(words, check=True, capture_output=True, timeout=120, env=environment)
    seen = json.loads(told.read_text("utf-8"))
    return float(seen["requests"] / seen["cpu"])


def _wrk(url: str) -> float:
    """Returns 0 without wrk. It has one thread that is always busy, so a second of it is a processor second."""
    if not shutil.which("wrk"):
        return 0.0
    done = subprocess.run(
        ["wrk", "-t1", f"-c{USERS}", f"-d{SECONDS}s", f"{url}/instances/i/connect"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return next(float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("Requests/sec"))
