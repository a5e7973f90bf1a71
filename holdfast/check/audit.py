"""Measures whether the harness itself was on time, so that its own delays are never blamed on the target.

Three clocks are read. The *lag* of the event loop: a task sleeps for 10 ms again and again and records by how much it
woke too late. The *run queue* of the loop's thread: seconds in which it was ready to run and the kernel ran something
else (`/proc/.../schedstat`). The *pressure* and *steal* of the machine, which only go into the report.

Whoever judges a timing asks `lag_between` for the window of its observation and subtracts the answer. Two rules make
that safe. The answer is never too small: the sample that ends after the window is counted too, because its lag may have
begun inside, and time since the last sample counts as lag if the probe is overdue at the moment of the question. And it
costs little memory: a late sample (over 10 ms) is always kept, a punctual one only every tenth time.

A second thread watches the probe. When the loop has not come round for 50 ms, the thread reads the loop's stack and
counts the function that it finds there, so that the report can name who held the loop.
"""

import asyncio
import bisect
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

_TICK = 0.01
_STALL = 0.05
_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
# Of punctual samples one in this many is kept; each with the lag that has added up until then.
_EVERY = 10
# A thread that waits in the run queue for more than this share of the time shares its processor with too many others.
_CROWDED = 0.25


class Audit:
    """Samples the loop's lag while it runs. `start`, `stop` and `calm` belong on the loop that is watched."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._lags: list[float] = []
        self._stalls: list[dict[str, float]] = []
        self._totals: list[float] = []
        self._total = 0.0
        self._task: asyncio.Task[None] | None = None
        self._beat = time.monotonic()
        self._thread_id = 0
        self._native_id = 0
        self._stopped = threading.Event()
        self._marks = [(time.monotonic(), 0.0)]
        self._holders: Counter[str] = Counter()
        self._steal = _cpu_times()
        self._cpu = time.process_time()
        self._began = time.monotonic()

    def start(self) -> None:
        """Starts the probe on the running loop, and the thread that watches it."""
        self._thread_id, self._native_id = threading.get_ident(), threading.get_native_id()
        self._task = asyncio.get_running_loop().create_task(self._sample(), name="loop-lag probe")
        threading.Thread(target=self._watch, name="loop watch", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._task:
            self._task.cancel()

    def lag_between(self, start: float, end: float) -> float:
        """Returns the longest stretch, in seconds, for which the loop was late between the two moments."""
        first, last = self._window(start, end)
        return max(max(self._lags[first:last], default=0.0), self._lag_now(start, end))

    def _lag_now(self, start: float, end: float) -> float:
        """Returns lag that the probe has not recorded yet: the caller may have been woken before the probe."""
        if self._task is None or self._stopped.is_set():
            return 0.0
        return min(end, time.monotonic()) - max(start, self._beat + _TICK)

    async def calm(self, within: float) -> None:
        """Returns once the loop is punctual and gets its processor again, at the latest after `within` seconds."""
        end = time.monotonic() + within
        while (before := time.monotonic()) < end:
            await asyncio.sleep(_TICK)
            if time.monotonic() - before < _TICK + _STALL / 2 and self._queued_lately() < _CROWDED:
                return

    def _queued_lately(self) -> float:
        """Returns the share of the last second or two for which the loop's thread waited in the run queue."""
        now, waited = time.monotonic(), self.run_queue_wait()
        if now - self._marks[-1][0] > 1:
            self._marks = [self._marks[-1], (now, waited)]
        since, then = self._marks[0]
        return (waited - then) / max(now - since, _TICK)

    def total_lag_between(self, start: float, end: float) -> float:
        """Returns all lag between the two moments, added up."""
        first, last = self._window(start, end)
        totals = self._totals[first:last]
        return totals[-1] - totals[0] if totals else 0.0

    def run_queue_wait(self) -> float:
        """Returns the seconds that the loop's own thread has waited in the run queue so far."""
        return _waited(f"/proc/self/task/{self._native_id}/schedstat") or 0.0

    def report(self) -> dict[str, Any]:
        lags = sorted(self._lags) or [0.0]
        steal, total = (now - then for now, then in zip(_cpu_times(), self._steal, strict=True))
        return {
            "loop_lag_ms": {name: round(lags[int(q * (len(lags) - 1))] * 1000, 2) for name, q in _QUANTILES.items()},
            "loop_stalls": len(self._stalls),
            "longest_stalls": sorted(self._stalls, key=lambda stall: -stall["ms"])[:10],
            "held_the_loop": dict(self._holders.most_common(10)),
            "cpu_pressure_avg10": _pressure_lately(),
            "steal_pct": round(100 * steal / total, 2) if total else 0.0,
            "harness_cpu_s": round(time.process_time() - self._cpu, 2),
            "harness_run_queue_s": round(self.run_queue_wait(), 2),
        }

    def _window(self, start: float, end: float) -> tuple[int, int]:
        # The sample after the window belongs to it too: its lag may have begun inside.
        return bisect.bisect_left(self._times, start), bisect.bisect_right(self._times, end) + 1

    async def _sample(self) -> None:
        count = 0
        while True:
            before, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(_TICK)
            self._beat = now = time.monotonic()
            lag = max(0.0, now - before - _TICK)
            if lag > _STALL:
                self._note_stall(now, lag, time.thread_time() - worked)
            self._total += lag
            count += 1
            if lag > _TICK or count % _EVERY == 0:
                self._times.append(now)
                self._lags.append(lag)
                self._totals.append(self._total)

    def _note_stall(self, at: float, lag: float, worked: float) -> None:
        """Records a stall, and how long the loop's thread worked in it: little work means that it got no processor."""
        stall = {"at_s": at - self._began, "ms": lag * 1000, "worked_ms": worked * 1000}
        self._stalls.append({name: round(value, 1) for name, value in stall.items()})

    def _watch(self) -> None:
        """Runs in a thread of its own: counts, once per stall, the function that holds the loop."""
        reported = 0.0
        while not self._stopped.wait(_STALL / 2):
            beat = self._beat
            if time.monotonic() - beat > _STALL + _TICK and beat != reported:
                reported = beat
                self._holders[_innermost_function(sys._current_frames().get(self._thread_id))] += 1  # noqa: SLF001 - the only way to see another thread's stack


def _innermost_function(frame: FrameType | None) -> str:
    """Returns the innermost function of Holdfast on this stack, as file:function."""
    while frame is not None:
        code = frame.f_code
        if "holdfast" in code.co_filename and code.co_name != "run_forever":
            return f"{Path(code.co_filename).name}:{code.co_name}"
        frame = frame.f_back
    return "the interpreter or a library"


class RunQueues:
    """Adds up how long all threads of some processes were ready but not running.

    A node that serves gRPC has a dozen threads, and each may be the one that a client waits for. The figure of a thread
    is gone with the thread, so the last one read is kept: the sum never falls, also over processes that have ended. A
    thread that starts and ends between two questions is not seen, so it excuses nothing.

    It is read before every judged wait. So threads are listed again only when their number has changed, which one
    `stat` tells (each thread is one more link of `/proc/<pid>/task`), or when one that was listed has gone.
    """

    def __init__(self) -> None:
        self._threads: dict[int, tuple[int, list[str]]] = {}
        self._waited: dict[str, float] = {}
        self._ended = 0.0

    def wait_of(self, pids: Iterable[int]) -> float:
        """Returns the seconds that these processes, and those asked for before, have waited in run queues so far."""
        for pid in pids:
            gone = [path for path in self._paths(pid) if not self._note(path)]
            if gone:
                del self._threads[pid]  # one of its threads has gone: list them again next time
        return self._ended + sum(self._waited.values())

    def _paths(self, pid: int) -> list[str]:
        try:
            links = os.stat(f"/proc/{pid}/task").st_nlink  # noqa: PTH116 - must be cheap, as below
            if self._threads.get(pid, (0, []))[0] != links:
                names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - must be cheap, as below
                self._threads[pid] = links, [f"/proc/{pid}/task/{name}/schedstat" for name in names]
        except OSError:
            return []
        return self._threads[pid][1]

    def _note(self, path: str) -> bool:
        now = _waited(path)
        if now is None:
            return False
        before = self._waited.get(path, 0.0)
        if now < before:  # the number of an ended thread is in use again
            self._ended += before
        self._waited[path] = now
        return True


def _waited(path: str) -> float | None:
    """Returns what a thread has waited in the run queue; None where there is no such thread or no figure."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - read before every judged wait, so it must be cheap
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def pressure() -> float:
    """Returns how long any task of this machine waited for a processor; 0 where the kernel has no figure."""
    try:
        with open("/proc/pressure/cpu", "rb") as file:  # noqa: PTH123 - as above
            return int(file.readline().split(b"total=")[1]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0


def _pressure_lately() -> float | None:
    """Returns the share of the last ten seconds in which any task waited for a processor, in percent."""
    try:
        return float(Path("/proc/pressure/cpu").read_text().split()[1].removeprefix("avg10="))
    except (OSError, IndexError, ValueError):
        return None


def _cpu_times() -> tuple[int, int]:
    """Returns the ticks stolen by the hypervisor, and all ticks, of all processors since boot."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except (OSError, ValueError):
        return 0, 0
    return ticks[7], sum(ticks)
