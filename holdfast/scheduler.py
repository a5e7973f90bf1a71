"""Runs checks so that their waiting overlaps: one event loop, longest first, heavy ones alone before all others."""

import asyncio
import datetime as dt
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.audit import Audit
from holdfast.catalogue import Catalogue
from holdfast.check import CheckSpec
from holdfast.deployment import Deployment, Deployments, Wanted
from holdfast.known import entry_fields, excuse, listed
from holdfast.patience import Patience
from holdfast.perform import Outcome, broken, perform
from holdfast.stream import Stream
from holdfast.target import Target
from holdfast.timings import Timings
from holdfast.verdict import Verdict

# Many checks wait at the spec's own time, few work; at a small scale the same work is packed closer.
OVERLAP_SCALED, OVERLAP_SPEC_TIME = 24, 96
STORMS_A_CORE = 5
# A check that plans to wait less than this is nearly all work. Few of those run at a time, beside the waiting ones
# and from the start: together at the end they would only slow each other down, and read as a slow target.
BUSY_BELOW, BUSY_AT_ONCE = 2.5, 2
# Checks start one after the other, the next when the loop has come to rest, or after this long: what is under way needs
# its processor, and on a crowded machine fewer at a time get further than many.
START_PATIENCE = 0.5


@dataclass(frozen=True)
class Job:
    """One check to run: `variant` names the mutant that it runs against, empty for the target itself."""

    check: str
    spec: CheckSpec
    target: Target
    catalogue: Catalogue
    timings: Timings
    params: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 1
    variant: str = ""
    seed: int = 0
    command: str = ""

    @property
    def planned(self) -> float:
        return self.timings.evaluate(self.spec.waits)

    @property
    def busy(self) -> bool:
        return self.spec.busy or self.planned < BUSY_BELOW

    @property
    def needs_all(self) -> bool:
        """The target has one deployment only and the check wants it for itself: alone, and after the others."""
        return self.spec.isolation != "shared" and not self.target.startable

    @property
    def wanted(self) -> Wanted:
        needs = self.spec.needs(self.catalogue)
        return Wanted(self.spec.isolation, needs, self.spec.settings, self.spec.nodes, self.variant)


Done = Callable[[Job, Outcome], None]


def overlap_for(scale: float, *, storms: bool = False) -> int:
    """Storms are at work all the time, each on a deployment of its own."""
    most = OVERLAP_SPEC_TIME if scale >= 1 else OVERLAP_SCALED
    return min(most, STORMS_A_CORE * (os.cpu_count() or 1)) if storms else most


class Scheduler:
    def __init__(
        self, deployments: Deployments, audit: Audit, stream: Stream, overlap: int, done: Done | None = None
    ) -> None:
        self._deployments = deployments
        self._audit = audit
        self._stream = stream
        self._waiting_lane = asyncio.Semaphore(overlap)
        self._busy_lane = asyncio.Semaphore(BUSY_AT_ONCE)
        self._door = asyncio.Lock()
        self._patience: defaultdict[tuple[str, str], Patience] = defaultdict(Patience)
        self._done = done or (lambda _job, _outcome: None)
        self.tasks: dict[tuple[str, str, int], asyncio.Task[Outcome]] = {}

    async def run(self, jobs: Sequence[Job]) -> None:
        for job in (job for job in jobs if job.spec.heavy):
            await self._alone(job)
        rest = sorted((job for job in jobs if not job.spec.heavy), key=lambda job: (job.repeat, -job.planned))
        tasks = [self._tracked(job, self._in_slot(job)) for job in rest if not job.needs_all]
        await asyncio.gather(*tasks, return_exceptions=True)
        alone = [job for job in rest if job.needs_all]
        if alone and tasks:
            await asyncio.sleep(alone[0].timings.evaluate(alone[0].catalogue.settle))
        for job in alone:
            await self._alone(job)

    async def _alone(self, job: Job) -> None:
        """A mutant's last check may be cancelled by its own verdict; the run goes on."""
        await asyncio.gather(self._tracked(job, self._run_one(job)), return_exceptions=True)

    def cancel_variant(self, variant: str) -> None:
        """A mutant that was killed needs no further checks."""
        for (_, its_variant, _), task in self.tasks.items():
            if its_variant == variant:
                task.cancel()

    def _tracked(self, job: Job, work: Awaitable[Outcome]) -> asyncio.Task[Outcome]:
        task = asyncio.ensure_future(work)
        self.tasks[(job.check, job.variant, job.repeat)] = task
        return task

    async def _in_slot(self, job: Job) -> Outcome:
        async with self._busy_lane if job.busy else self._waiting_lane:
            async with self._door:
                await self._audit.calm(START_PATIENCE)
            return await self._run_one(job)

    async def _run_one(self, job: Job) -> Outcome:
        """One attempt, and one more, visibly, when the first was inconclusive. A fail is never tried again."""
        outcome = await self._attempt(job, 1)
        if outcome.verdict is Verdict.INCONCLUSIVE:
            self._report(job, outcome, final=False)
            outcome = await self._attempt(job, 2)
        self._report(job, outcome, final=True)
        return outcome

    async def _attempt(self, job: Job, attempt: int) -> Outcome:
        self._stream.emit(
            "check.started",
            check=job.check,
            title=job.spec.title,
            planned_s=round(job.planned, 3),
            attempt=attempt,
            repeat=job.repeat,
            variant=job.variant,
        )
        leased: list[Deployment] = []

        async def lease() -> Deployment:
            leased.append(await self._deployments.lease(job.wanted, job.target, job.timings))
            return leased[-1]

        try:
            await lease()
        except Exception as error:  # noqa: BLE001 - a deployment that does not start is a verdict, not a crash
            return broken(attempt, f"the deployment did not start: {error}")
        try:
            outcome = await self._perform(job, leased[0], lease, attempt)
        finally:
            trouble = await asyncio.shield(self._give_back(leased))
        if trouble and outcome.verdict is not Verdict.ERROR:
            return broken(attempt, f"the deployment could not be taken down: {trouble}")
        return outcome

    async def _give_back(self, leased: Sequence[Deployment]) -> str:
        """What kept them from being taken down whole, if anything."""
        done = await asyncio.gather(*(self._deployments.give_back(one) for one in leased), return_exceptions=True)
        return "; ".join(str(error) or type(error).__name__ for error in done if isinstance(error, Exception))

    async def _perform(
        self, job: Job, deployment: Deployment, lease: Callable[[], Awaitable[Deployment]], attempt: int
    ) -> Outcome:
        def say_waiting(what: str, seconds: float) -> None:
            self._stream.show(
                "check.waiting", check=job.check, repeat=job.repeat, waiting_for=what, until_s=round(seconds, 2)
            )

        return await perform(
            job.spec,
            deployment,
            target=job.target,
            catalogue=job.catalogue,
            timings=job.timings,
            params=job.params,
            planned=job.planned,
            audit=self._audit,
            seed=job.seed + attempt - 1,
            say_waiting=say_waiting,
            lease=lease,
            attempt=attempt,
            patience=self._patience[job.target.name, job.variant],
            transcribe=job.repeat == 1 and not job.variant,
        )

    def _report(self, job: Job, outcome: Outcome, *, final: bool) -> None:
        entry = listed(job.spec, job.target)
        outcome = excuse(outcome, entry, dt.datetime.now(dt.UTC).date())
        self._stream.emit(
            "check.finished",
            check=job.check,
            repeat=job.repeat,
            variant=job.variant,
            final=final,
            title=job.spec.title,
            verifies=[{"id": claim.id, "part": claim.part} for claim in job.spec.claims],
            planned_s=round(job.planned, 3),
            isolation=job.spec.isolation,
            command=job.command,
            known=entry_fields(entry),
            **{**outcome.fields(), "started_s": round(outcome.started - self._stream.started, 4)},
        )
        if final:
            self._done(job, outcome)
