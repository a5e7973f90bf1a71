"""All that belongs to one run of one check: its deployment, its transcript, what it waits for and what it measured."""

import asyncio
import bisect
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from holdfast.audit import Audit
from holdfast.catalogue import Catalogue
from holdfast.check import CheckSpec
from holdfast.deployment import Deployment
from holdfast.fault import Window
from holdfast.finding import Inconclusive
from holdfast.patience import UNANSWERED, Patience
from holdfast.target import Target
from holdfast.timings import Timings
from holdfast.transcript import Secrets, Transcript

_MARKS_APART = 0.05


class Provided(Protocol):
    """A type that a check may ask for by annotation."""

    @classmethod
    async def provide(cls, context: "Context") -> Self: ...


P = TypeVar("P", bound=Provided)


@dataclass
class Context:
    spec: CheckSpec
    target: Target
    catalogue: Catalogue
    timings: Timings
    deployment: Deployment
    audit: Audit
    seed: int
    say_waiting: Callable[[str, float], None]
    lease: Callable[[], Awaitable[Deployment]]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    transcript: Transcript = field(default_factory=lambda: Transcript(Secrets()))
    warnings: list[str] = field(default_factory=list)
    measured: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    patience: Patience = field(default_factory=Patience)
    unanswered: int = 0
    # The driver says so where the target itself has to be on time for its state to stay as it is: leases run out.
    lapses: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._further: list[Deployment] = []
        self._queued: list[tuple[float, float]] = []
        self.mark_time()
        self.held_at_start = self.held_back()
        self._provided: dict[type, Any] = {}

    async def get(self, wanted: type[P]) -> P:
        """The one instance of this type that belongs to the check, made on first use."""
        if wanted not in self._provided:
            self._provided[wanted] = await wanted.provide(self)
        instance: P = self._provided[wanted]
        return instance

    async def another(self) -> Deployment:
        """One more deployment like the check's own, until the check ends."""
        deployment = await self.lease()
        self._further.append(deployment)
        return deployment

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self.transcript.note(f"warn: {text}")

    @contextmanager
    def call(self, full: float) -> Iterator[float]:
        """Around one call to the target: says how long to wait for its answer, `full` seconds at most."""
        began = time.monotonic()
        try:
            yield self.patience.of(full)
        except (TimeoutError, asyncio.CancelledError) as end:
            held = self.audit.total_lag_between(began, time.monotonic()) + self.queued_since(began)
            if isinstance(end, TimeoutError) and held > full / 2:
                raise Inconclusive(f"no answer after {full:.1f} s, {held:.1f} s of them the machine's own") from end
            # The check's own deadline may come before our patience ends.
            if isinstance(end, TimeoutError) or time.monotonic() - began > UNANSWERED:
                self.unanswered += 1
                self.patience.silences += 1
            raise
        self.patience.answered = True

    def held_back(self) -> float:
        """Seconds that the machine has held us and the target back so far: run queues, and our own lag meanwhile."""
        lag = self.audit.total_lag_between(self.transcript.started, time.monotonic())
        return lag + self.audit.run_queue_wait() + self._run_queue_wait()

    def mark_time(self) -> float:
        """Now, with what the target's processes have stood in run queues so far."""
        now = time.monotonic()
        if not self._queued or now - self._queued[-1][0] > _MARKS_APART:
            self._queued.append((now, self._run_queue_wait()))
        return now

    def queued_since(self, moment: float) -> float:
        """Seconds that the target's processes have stood in run queues since then, rather too many than too few."""
        index = max(0, bisect.bisect_right(self._queued, moment, key=lambda mark: mark[0]) - 1)
        return max(0.0, self._run_queue_wait() - self._queued[index][1])

    def _run_queue_wait(self) -> float:
        return sum(deployment.run_queue_wait() for deployment in (self.deployment, *self._further))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start, status = self._elapsed_ms(), "passed"
        self.transcript.note(name)
        try:
            yield
        except BaseException:
            status = "failed"
            raise
        finally:
            self.steps.append({"name": name, "start_ms": start, "stop_ms": self._elapsed_ms(), "status": status})

    def _elapsed_ms(self) -> float:
        return round((time.monotonic() - self.transcript.started) * 1000, 1)
