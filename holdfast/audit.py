"""Whether the harness itself was on time: loop lag and who caused it, pressure and steal of the machine."""

import asyncio
import bisect
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

_TICK = 0.01
_STALL = 0.05
_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
# Of all samples this share is kept; each with the lag that has added up until then.
_EVERY = 10
# Who stands in the run queue for so much of the time shares its processor with too many others.
_CROWDED = 0.25


class Audit:
    """Samples the loop's lag while it runs, so that every timing can subtract what was our own fault."""

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
        """On the loop that is to be watched."""
        self._thread_id, self._native_id = threading.get_ident(), threading.get_native_id()
        self._task = asyncio.get_running_loop().create_task(self._sample(), name="loop-lag probe")
        threading.Thread(target=self._watch, name="loop watch", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._task:
            self._task.cancel()

    def lag_between(self, start: float, end: float) -> float:
        """The longest stretch between the two moments in which the loop did not answer."""
        first, last = self._window(start, end)
        return max(max(self._lags[first:last], default=0.0), self._lag_now(start, end))

    def _lag_now(self, start: float, end: float) -> float:
        """What the probe has not told yet: whoever asks may have been woken before it."""
        if self._task is None or self._stopped.is_set():
            return 0.0
        return min(end, time.monotonic()) - max(start, self._beat + _TICK)

    async def calm(self, patience: float) -> None:
        """Return once the loop comes round without much delay and gets its processor, or after so many seconds."""
        end = time.monotonic() + patience
        while (before := time.monotonic()) < end:
            await asyncio.sleep(_TICK)
            if time.monotonic() - before < _TICK + _STALL / 2 and self._queued_lately() < _CROWDED:
                return

    def _queued_lately(self) -> float:
        """Which share of the last second or two the loop's own thread has stood in the run queue."""
        now, waited = time.monotonic(), self.run_queue_wait()
        if now - self._marks[-1][0] > 1:
            self._marks = [self._marks[-1], (now, waited)]
        since, then = self._marks[0]
        return (waited - then) / max(now - since, _TICK)

    def total_lag_between(self, start: float, end: float) -> float:
        """All the time between the two moments that the loop was late, added up."""
        first, last = self._window(start, end)
        totals = self._totals[first:last]
        return totals[-1] - totals[0] if totals else 0.0

    def run_queue_wait(self) -> float:
        """Seconds that the loop's own thread has stood in the run queue so far."""
        return _waited(f"/proc/self/task/{self._native_id}/schedstat")

    def report(self) -> dict[str, Any]:
        lags = sorted(self._lags) or [0.0]
        steal, total = (now - then for now, then in zip(_cpu_times(), self._steal, strict=True))
        return {
            "loop_lag_ms": {name: round(lags[int(q * (len(lags) - 1))] * 1000, 2) for name, q in _QUANTILES.items()},
            "loop_stalls": len(self._stalls),
            "longest_stalls": sorted(self._stalls, key=lambda stall: -stall["ms"])[:10],
            "held_the_loop": dict(self._holders.most_common(10)),
            "cpu_pressure_avg10": _pressure(),
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
        """With what the loop's own thread worked meanwhile: little means that it was kept from working."""
        stall = {"at_s": at - self._began, "ms": lag * 1000, "worked_ms": worked * 1000}
        self._stalls.append({name: round(value, 1) for name, value in stall.items()})

    def _watch(self) -> None:
        """From another thread: name what runs on the loop when it has not come round for too long."""
        reported = 0.0
        while not self._stopped.wait(_STALL / 2):
            beat = self._beat
            if time.monotonic() - beat > _STALL + _TICK and beat != reported:
                reported = beat
                self._holders[_ours(sys._current_frames().get(self._thread_id))] += 1  # noqa: SLF001 - the only way to see another thread's stack


def _ours(frame: FrameType | None) -> str:
    """The innermost function of ours on this stack, as file:function."""
    while frame is not None:
        code = frame.f_code
        if "holdfast" in code.co_filename and code.co_name != "run_forever":
            return f"{Path(code.co_filename).name}:{code.co_name}"
        frame = frame.f_back
    return "the interpreter or a library"


def run_queue_wait(pid: int) -> float:
    """Seconds that a process's main thread was runnable but not running; 0 where the kernel does not tell."""
    return _waited(f"/proc/{pid}/schedstat")


def _waited(path: str) -> float:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - read before every judged wait, so cheaply
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def pressure() -> float:
    """Seconds in which somebody on this machine waited for a processor, so far; 0 where the kernel does not tell."""
    try:
        with open("/proc/pressure/cpu", "rb") as file:  # noqa: PTH123 - as above
            return int(file.readline().split(b"total=")[1]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0


def _pressure() -> float | None:
    try:
        return float(Path("/proc/pressure/cpu").read_text().split()[1].removeprefix("avg10="))
    except (OSError, IndexError, ValueError):
        return None


def _cpu_times() -> tuple[int, int]:
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except (OSError, ValueError):
        return 0, 0
    return ticks[7], sum(ticks)
