"""All that belongs to one attempt of one check: its deployment, its transcript, what it measured and found.

`holdfast.run` makes a `Context` for each attempt, runs the check with it, and reads the records (`transcript`,
`warnings`, `measured`, `steps`, `windows`) when the check has ended. Everything that a check asks for by annotation is
made from its context: `get` calls the type's `provide` once and keeps the instance, so that two drivers that need the
same third one share it. What has to be closed at the end goes on `stack`, which is unwound in reverse order after the
verdict, also when the check was cancelled. Nothing of a context outlives it except `answer_timeout`, which all checks
of one target share.

The context also keeps the books on the machine. `held_back` says how much time the machine has taken from the harness
and from the target's processes, so that deadlines can be extended by it. `mark_time` notes, at most every 50 ms, how
long the target's processes had waited in run queues by then; `queued_since` answers from the last note before a moment,
so its answer may be too large and is never too small: it excuses rather than accuses.
"""

import asyncio
import bisect
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

from holdfast.check.answer_timeout import UNANSWERED_AFTER, AnswerTimeout
from holdfast.check.audit import Audit
from holdfast.check.decisive import Acts
from holdfast.check.evidence import Evidence, FaultSeen, JudgedTiming, ReceiptSeen, Step, WalkSeen
from holdfast.check.finding import ArrangementFailed, Inconclusive, Unsafe
from holdfast.check.transcript import Secrets, Transcript
from holdfast.check.verifies import CheckSpec
from holdfast.check.walk.against import Beside
from holdfast.check.walk.order import Order
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.timings import Timings
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import Target
from holdfast.target.fault import Window

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
    measured: list[JudgedTiming] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    answer_timeout: AnswerTimeout = field(default_factory=AnswerTimeout)
    unanswered: int = 0
    acts: Acts = field(default_factory=Acts)
    # Findings after which the check went on (`collect`).
    found: list[AssertionError] = field(default_factory=list)
    # The row that a finding is about, by the finding's identity, where the check has said so (`about`).
    row_of: dict[int, str] = field(default_factory=dict)
    # What the run asks of its walks; without it a check of walks does what it usually does.
    walk_order: Order | None = None
    walk: WalkSeen | None = None
    # The faults of a storm, as the file that repeats them.
    schedule: str = ""
    # A second target that takes the same walks, or what this one lends to the walks of another.
    beside: Beside | None = None
    lends: Beside | None = None
    # The rows that the check's verdict is about; None for all that it claims.
    decided: tuple[str, ...] | None = None
    # Set by the driver where the target's state lapses unless the target itself is on time, as leases do. Then an
    # overloaded machine excuses every finding that is not `Unsafe`.
    lapses: bool = False
    # Says which stub of the suite was so late that a node may have given it up; empty if none was.
    late_stub: str = ""

    async def perform_check(self, params: Mapping[str, Any]) -> None:
        """Runs the check with what it asks for; `params` are what pytest parametrized."""
        provided: dict[str, Any] = {name: await self.get(kind) for name, kind in self.spec.provided().items()}
        await self.spec.function(**provided, **params)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.transcript.exchanged = self.acts.exchanged
        self._further: list[Deployment] = []
        self._queued: list[tuple[float, float]] = []
        self.mark_time()
        self.held_at_start = self.held_back()
        self._provided: dict[type, Any] = {}

    async def get(self, wanted: type[P]) -> P:
        """Returns the one instance of this type that belongs to the check; makes it on first use."""
        if wanted not in self._provided:
            self._provided[wanted] = await wanted.provide(self)
        instance: P = self._provided[wanted]
        return instance

    async def another(self) -> Deployment:
        """Starts one more deployment like the check's own; it is there until the check ends."""
        deployment = await self.lease()
        self._further.append(deployment)
        return deployment

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self.transcript.note(f"warn: {text}")

    @contextmanager
    def arranging(self, owner: str) -> Iterator[None]:
        """Put around steps that only prepare the check; `owner` is the row that judges them.

        What goes wrong inside is no failure of the row under test: a finding becomes ArrangementFailed. It stays a
        finding if the check verifies `owner` itself, and if it is `Unsafe`, which counts wherever it is seen.
        """
        if owner not in self.catalogue.requirements:
            raise LookupError(f"arranging({owner!r}): the catalogue has no such row")
        own = any(claim.id == owner for claim in self.spec.claims)
        try:
            with nullcontext() if own else self.acts.arranging():
                yield
        except Unsafe:
            raise
        except AssertionError as finding:
            if own:
                raise
            raise ArrangementFailed(owner, str(finding)) from finding

    @contextmanager
    def about(self, row: str) -> Iterator[None]:
        """Put around a judgement of one row, in a check that verifies several: a finding is about that row alone.

        The others are then undecided, as the check has not come to its end. If the check does not verify `row` at all,
        the judgement is part of the arrangement.
        """
        if all(claim.id != row for claim in self.spec.claims):
            with self.arranging(row):
                yield
            return
        try:
            yield
        except AssertionError as finding:
            self.row_of[id(finding)] = row
            raise

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Put around a judgement after which the check can safely go on: a finding fails the check only at its end.

        So one row shows all that is wrong with it, the worst as its headline. Inside `arranging` a finding goes on, as
        what would follow rests on the arrangement.
        """
        try:
            yield
        except AssertionError as finding:
            if self.acts.depth:
                raise
            self.found.append(finding)
            self.transcript.note(f"found: {finding}")

    @contextmanager
    def call(self, full: float) -> Iterator[float]:
        """Put around one call to the target: gives the seconds to wait for its answer, `full` at most.

        Notes whether an answer came. Raises Inconclusive where the machine took more than half of `full` for itself.
        """
        began = time.monotonic()
        self.acts.exchanged()
        try:
            yield self.answer_timeout.of(full)
        except (TimeoutError, asyncio.CancelledError) as end:
            held = self.audit.total_lag_between(began, time.monotonic()) + self.queued_since(began)
            if isinstance(end, TimeoutError) and held > full / 2:
                raise Inconclusive(
                    f"no answer after {full:.1f} s, in {held:.1f} s of which the machine ran other work"
                ) from end
            # Cancelled: the check's deadline came before the timeout of this call.
            if isinstance(end, TimeoutError) or time.monotonic() - began > UNANSWERED_AFTER:
                self.unanswered += 1
                self.answer_timeout.unanswered += 1
            raise
        self.answer_timeout.answered = True

    def held_back(self) -> float:
        """Returns the seconds that the machine has taken so far from us and the target: run queues, our loop's lag."""
        lag = self.audit.total_lag_between(self.transcript.started, time.monotonic())
        return lag + self.audit.run_queue_wait() + self._run_queue_wait()

    def mark_time(self) -> float:
        """Returns the time, and notes how long the target's processes have waited in run queues by now."""
        now = time.monotonic()
        if not self._queued or now - self._queued[-1][0] > _MARKS_APART:
            self._queued.append((now, self._run_queue_wait()))
        return now

    def queued_since(self, moment: float) -> float:
        """Returns the seconds that the target's processes have waited in run queues since then; never too few."""
        index = max(0, bisect.bisect_right(self._queued, moment, key=lambda mark: mark[0]) - 1)
        return max(0.0, self._run_queue_wait() - self._queued[index][1])

    def _run_queue_wait(self) -> float:
        return sum(deployment.run_queue_wait() for deployment in (self.deployment, *self._further))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Records what happens in the block as one step of the report, with its times and whether it raised."""
        start, status = self._elapsed_ms(), "passed"
        self.transcript.note(name)
        try:
            yield
        except BaseException:
            status = "failed"
            raise
        finally:
            self.steps.append(Step(name, start, self._elapsed_ms(), status))

    def evidence(self, *, transcribed: bool) -> Evidence:
        """Everything noted so far, with secrets under their aliases; the transcript only if `transcribed`."""
        redact = self.transcript.secrets.redact
        steps = sorted(self.steps, key=lambda step: step.start_ms)  # recorded as they end
        return Evidence(
            transcript=self.transcript.lines() if transcribed else (),
            dropped=self.transcript.dropped if transcribed else 0,
            timings=tuple(self.measured),
            warnings=tuple(redact(text) for text in self.warnings),
            steps=tuple(replace(step, name=redact(step.name)) for step in steps),
            faults=tuple(_seen(window, self.transcript.started) for window in self.windows),
            walk=self.walk,
            schedule=self.schedule,
        )

    def _elapsed_ms(self) -> float:
        return round((time.monotonic() - self.transcript.started) * 1000, 1)


def _seen(window: Window, start: float) -> FaultSeen:
    """A window as the report has it, in seconds since `start`."""
    ended = window.healed or time.monotonic()
    return FaultSeen(
        fault=window.fault.kind,
        subject=window.fault.subject,
        text=window.fault.describe(),
        asked_s=round(window.asked - start, 3),
        in_force_s=round(window.in_force - start, 3),
        healed_s=round(ended - start, 3),
        receipts=[ReceiptSeen(receipt.seen, receipt.proven) for receipt in window.receipts],
        proven=window.proven,
    )
