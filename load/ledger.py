"""What one worker has seen, in parts that can be sent: each part says what happened since the last one.

A worker never waits for a slot or a lock, and it keeps nothing that it has handed over, so its memory stays flat. A
part holds histograms by operation and second, counts, and the operations for the invariants. Parts are numbered, and
the last one says how many starts there were in all, so a part or a worker that is missing is noticed.
"""

import resource
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from holdfast.check.history import Operation
from holdfast.load.latency import Latencies

# A start that is later than this is late: the generator, not the target, has delayed the request.
LATE = 0.05
SECOND = 1.0


@dataclass
class Slot:
    """The requests of one operation that were due in one second."""

    from_due: list[float] = field(default_factory=list)
    from_sent: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass
class Counts:
    """Of arrivals: how many were due, how many of them started late or not at all, how many ended."""

    starts: int = 0
    late: int = 0
    shed: int = 0
    ended: int = 0
    latest: float = 0.0

    def add(self, other: "Counts") -> None:
        self.starts += other.starts
        self.late += other.late
        self.shed += other.shed
        self.ended += other.ended
        self.latest = max(self.latest, other.latest)


class Ledger:
    """Written by the greenlets of one worker; times are seconds since the start of the campaign."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.totals = Counts()
        self.notes: list[str] = []
        self._since = Counts()
        self._slots: dict[tuple[str, int], Slot] = {}
        self._operations: list[Operation] = []
        self._ends: Counter[int] = Counter()
        self._number = 0
        self._usage = _Usage()

    def started(self, lateness: float) -> None:
        since = self._since
        since.starts += 1
        if lateness > LATE:
            since.late += 1
        since.latest = max(since.latest, lateness)

    def shed(self) -> None:
        self._since.starts += 1
        self._since.shed += 1

    def ended(self, at: float) -> None:
        self._since.ended += 1
        self._ends[int(at // SECOND)] += 1

    def sample(self, name: str, due: float, sent: float, done: float, outcome: str) -> None:
        """Notes one request: when it should have left, when it did, when its answer was there, and what it was."""
        slot = self._slots.setdefault((name, int(due // SECOND)), Slot())
        slot.from_due.append(done - due)
        slot.from_sent.append(done - sent)
        slot.outcomes[outcome] += 1

    def operation(self, operation: Operation) -> None:
        self._operations.append(operation)

    def part(self, *, last: bool = False) -> dict[str, Any]:
        """Returns all that happened since the last part, as JSON."""
        slots, self._slots = self._slots, {}
        ends, self._ends = self._ends, Counter()
        operations, self._operations = self._operations, []
        since, self._since = self._since, Counts()
        self.totals.add(since)
        self._number += 1
        return {
            "kind": "part",
            "worker": self.worker,
            "number": self._number,
            "slots": [[name, second, *_packed(slot)] for (name, second), slot in slots.items()],
            "operations": [_plain(operation) for operation in operations],
            "since": asdict(since),
            "ends": {str(second): count for second, count in ends.items()},
            "usage": self._usage.since(),
            "totals": asdict(self.totals) if last else None,
            "notes": self.notes if last else [],
        }


def _packed(slot: Slot) -> tuple[tuple[str, float], tuple[str, float], dict[str, int]]:
    return Latencies.of(slot.from_due).packed(), Latencies.of(slot.from_sent).packed(), dict(slot.outcomes)


def _plain(operation: Operation) -> list[Any]:
    """Returns it as a list; JSON has no infinity, so an operation without an end has None there."""
    *fields, completed = operation
    return [*map(_word, fields), None if completed == float("inf") else completed]


def _word(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


class _Usage:
    """The processor time of this process, and how long it stood in the run queue, between two questions."""

    def __init__(self) -> None:
        self._last = self._read()

    def since(self) -> Mapping[str, float]:
        before, self._last = self._last, self._read()
        wall = max(self._last[0] - before[0], 1e-6)
        return {
            "cpu": (self._last[1] - before[1]) / wall,
            "queue": (self._last[2] - before[2]) / wall,
            "rss_mb": _memory_mb(),
            "wall_s": wall,
        }

    @staticmethod
    def _read() -> tuple[float, float, float]:
        return time.monotonic(), time.process_time(), _run_queue()


def _memory_mb() -> float:
    """Returns what this process has in memory now; its most so far where the kernel does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _run_queue() -> float:
    """Returns the seconds for which this process could have run and did not; 0 where the kernel does not say."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
