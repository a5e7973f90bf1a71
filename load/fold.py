"""Puts the parts of all workers together, from the file that the generator wrote: one JSON object a line.

The same parts give the same result in any order and from any number of workers. What is missing is told: a worker
without a last part, a gap in its numbers, starts that neither ended nor were shed.
"""

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.check.history import History, Operation, Outcome
from holdfast.load.latency import Latencies
from holdfast.load.ledger import SECOND, Counts

Packed = list[Any]
# A generator whose processor is busier than this delays its own measurements.
_BUSY = 0.9
# With more late starts than this share, or one that is later than this, the target was not loaded as it should have
# been. Fewer are no matter: latency runs from when a request was due, so they only add to it.
_LATE_SHARE, _MUCH_TOO_LATE = 0.05, 0.5
# A process that stands in the run queue for longer than this share of a second is on a busy machine.
_QUEUED = 0.2


@dataclass
class Worker:
    """What one worker has told so far."""

    numbers: set[int] = field(default_factory=set)
    totals: dict[str, float] | None = None
    cpu: float = 0.0
    queue: float = 0.0
    rss_mb: list[float] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.totals is not None and self.numbers == set(range(1, len(self.numbers) + 1))


@dataclass
class Second:
    """One operation in one second: how long it took from when it was due and from when it left, and how it ended."""

    from_due: list[Packed] = field(default_factory=list)
    from_sent: list[Packed] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass
class Folded:
    """A whole campaign, or what is there of it."""

    began: float | None = None
    expected: int = 0
    workers: dict[str, Worker] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    seconds: dict[tuple[str, int], Second] = field(default_factory=lambda: defaultdict(Second))
    # How many arrivals ended in which second.
    ends: Counter[int] = field(default_factory=Counter)
    operations: list[Operation] = field(default_factory=list)
    locust: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refused: str = ""

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.seconds))

    @property
    def history(self) -> History:
        return History.of(self.operations)

    def latencies(self, name: str, *, sent: bool = False, only: Iterable[int] | None = None) -> Latencies:
        """Returns all latencies of an operation, or those that were due in these seconds of the campaign."""
        wanted = None if only is None else set(only)
        texts = (
            packed
            for (each, second), slot in self.seconds.items()
            if each == name and (wanted is None or second in wanted)
            for packed in (slot.from_sent if sent else slot.from_due)
        )
        return Latencies.merged((text, longest) for text, longest in texts)

    def outcomes(self, name: str) -> Counter[str]:
        return sum((slot.outcomes for (each, _), slot in self.seconds.items() if each == name), Counter())

    def missing(self) -> list[str]:
        """Returns what keeps this from being a whole campaign, in sentences."""
        return list(self._missing())

    def _missing(self) -> Iterator[str]:
        if self.refused:
            yield self.refused
        elif self.began is None:
            yield "the generator never started"
        if self.began is not None and len(self.workers) < self.expected:
            yield f"{len(self.workers)} of {self.expected} workers were heard of"
        for name, worker in sorted(self.workers.items()):
            if not worker.complete:
                yield f"worker {name} went away in the middle; its last requests were not counted"
        if self.began is not None and all(worker.complete for worker in self.workers.values()):
            lost = self.counts.starts - self.counts.shed - self.counts.ended
            if lost:
                yield f"{lost} requests were started and never accounted for"

    def saturated(self) -> list[str]:
        """Returns why the generator itself may have delayed requests, in sentences."""
        found = []
        late, starts = self.counts.late, max(self.counts.starts, 1)
        if late / starts > _LATE_SHARE or self.counts.latest > _MUCH_TOO_LATE:
            queue = max((worker.queue for worker in self.workers.values()), default=0.0)
            waited = (
                f" (a worker stood in the run queue for {100 * queue:.0f} % of a second)" if queue > _QUEUED else ""
            )
            found.append(f"{late} of {starts} requests started late, by up to {self.counts.latest:.3f} s{waited}")
        found += [
            f"worker {name} kept its processor busy for {100 * worker.cpu:.0f} % of the time"
            for name, worker in self.workers.items()
            if worker.cpu > _BUSY
        ]
        return found

    def add(self, record: dict[str, Any]) -> None:
        match record.get("kind"):
            case "start":
                self.began, self.expected = float(record["at"]), int(record["workers"])
            case "part":
                self._part(record)
            case "locust":
                self.locust = record["stats"]
            case "refused":
                self.refused = str(record["why"])

    def _part(self, record: dict[str, Any]) -> None:
        worker = self.workers.setdefault(record["worker"], Worker())
        if record["number"] in worker.numbers:  # told twice: Locust may send a report again
            return
        worker.numbers.add(record["number"])
        worker.totals = record["totals"] or worker.totals
        usage = record["usage"]
        if usage["wall_s"] > SECOND / 2:  # the share of a moment says nothing
            worker.cpu, worker.queue = max(worker.cpu, usage["cpu"]), max(worker.queue, usage["queue"])
        worker.rss_mb.append(usage["rss_mb"])
        since = record["since"]
        self.counts.add(Counts(**since))
        self.ends.update({int(second): count for second, count in record["ends"].items()})
        for name, second, from_due, from_sent, outcomes in record["slots"]:
            slot = self.seconds[name, second]
            slot.from_due.append(from_due)
            slot.from_sent.append(from_sent)
            slot.outcomes.update(outcomes)
        self.operations += map(_operation, record["operations"])
        self.notes += record["notes"]


def _operation(fields: list[Any]) -> Operation:
    client, what, key, argument, outcome, value, invoked, completed = fields
    ended = float("inf") if completed is None else completed
    return Operation(client, what, key, argument, Outcome(outcome), value, invoked, ended)


def fold(lines: Iterable[str]) -> Folded:
    """Folds the lines of a generator; a torn last line, which a killed one leaves, is left out."""
    folded = Folded()
    for line in lines:
        with contextlib.suppress(ValueError):
            folded.add(json.loads(line))
    return folded


class Follower:
    """Folds a file while it grows; each look reads only what is new and whole."""

    def __init__(self, path: Path) -> None:
        self.folded = Folded()
        self._path = path
        self._at = 0

    def look(self) -> Folded:
        if self._path.is_file():
            with self._path.open("rb") as file:
                file.seek(self._at)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._at += len(whole)
            for line in whole.splitlines():
                self.folded.add(json.loads(line))
        return self.folded


def read(path: Path) -> Folded:
    return Follower(path).look()
