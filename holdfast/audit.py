"""Whether the harness itself was on time: loop lag, who held the loop, pressure and steal of the machine."""

import asyncio
import bisect
import time
from pathlib import Path
from typing import Any

_TICK = 0.01
_STALL = 0.05


class Audit:
    """Samples the loop's lag while it runs, so that every timing can subtract what was our own fault."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._lags: list[float] = []
        self._task: asyncio.Task[None] | None = None
        self._steal = _cpu_times()
        self._cpu = time.process_time()
        self._began = time.monotonic()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._sample(), name="loop-lag probe")

    def stop(self) -> None:
        if self._task:
            self._task.cancel()

    def lag_between(self, start: float, end: float) -> float:
        """The longest stretch between the two moments in which the loop did not answer."""
        first, last = bisect.bisect_left(self._times, start), bisect.bisect_right(self._times, end)
        # The sample after the window belongs to it too: its lag may have begun inside.
        return max(self._lags[first : last + 1], default=0.0)

    def report(self) -> dict[str, Any]:
        lags = sorted(self._lags) or [0.0]
        stalls = [
            {"at_s": round(at - self._began, 3), "ms": round(lag * 1000, 1)}
            for at, lag in zip(self._times, self._lags, strict=True)
            if lag > _STALL
        ]
        steal, total = (now - then for now, then in zip(_cpu_times(), self._steal, strict=True))
        return {
            "loop_lag_ms": {name: round(lags[int(q * (len(lags) - 1))] * 1000, 2) for name, q in _QUANTILES.items()},
            "loop_stalls": len(stalls),
            "longest_stalls": sorted(stalls, key=lambda stall: -stall["ms"])[:10],
            "cpu_pressure_avg10": _pressure(),
            "steal_pct": round(100 * steal / total, 2) if total else 0.0,
            "harness_cpu_s": round(time.process_time() - self._cpu, 2),
        }

    async def _sample(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            lag = now - before - _TICK
            if lag > _TICK or len(self._times) % 10 == 0:
                self._times.append(now)
                self._lags.append(max(0.0, lag))


_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def run_queue_wait(pid: int) -> float:
    """Seconds that a process's main thread was runnable but not running; 0 where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:  # noqa: PTH123 - read before every judged wait, so cheaply
            return int(file.read().split()[1]) / 1e9
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
