"""Runs checks so that their waiting overlaps: one event loop, longest first.

Most checks wait far more than they work, so many of them wait at the same time. Three rules keep them from disturbing
each other:

- Two lanes. A check that plans to wait takes one of many places of this runner. One that mostly works takes as many of
  the few places for work as it weighs; those are shared by all runners (`holdfast.run.places`). Both lanes are filled
  from the start: working checks left to the end would only slow each other down and read as a slow target. Of one
  working check only one copy runs at a time, for several mutants or in several repeats: they would spoil each other.
- One door. Checks that plan to wait begin one after the other, each when the loop has come to rest, because there are
  many of them and a deployment that starts takes the processor from those that are being timed. Working ones need no
  door: their places are few already, and a full machine, where the loop seldom rests, would let two a second begin.
- Alone. Checks that want the only deployment of a target for themselves run after all others, when the target has
  forgotten them (`settle` of the catalogue, planned by `holdfast.run.estimate`), and those that disturb it come last.

Each job ends in exactly one final outcome, whatever happens around it: a deployment that does not start, or can't be
taken down, is a verdict too. An inconclusive attempt is tried once more, and both attempts are reported; a `fail` is
never tried again. The second attempt waits until every check has had its first one, and few of them run at a time, of
those that mostly work only one: most first attempts were inconclusive because the machine had too much to do. What has
blocked one check in both of its attempts blocks the others too: they are not tried again, so that a target on which
nothing can be arranged is told so soon.

The scheduler owns the deployments that it leased and gives each of them back, also those of a check that is cancelled
because its mutant has been killed already.
"""

import asyncio
import contextlib
import datetime as dt
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from holdfast.check.answer_timeout import AnswerTimeout
from holdfast.check.audit import Audit
from holdfast.check.finding import NotObservable
from holdfast.run.events import CheckFinished, CheckStarted, CheckWaiting, RunWaiting
from holdfast.run.job import Job
from holdfast.run.known_failures import excuse, listed, reported
from holdfast.run.perform import Outcome, Surroundings, decided_rows, perform
from holdfast.run.stream import Stream
from holdfast.run.tokens import URGENCY, OwnTokens, Tokens
from holdfast.spec.verdict import Verdict
from holdfast.target.deployment import Deployment, Deployments

# Many checks wait at the spec's own time, few work; at a small scale the same work is packed closer.
OVERLAP_SCALED, OVERLAP_SPEC_TIME = 24, 96
# Of several runners each takes fewer: together they would otherwise do at once what the machine bears over time.
OVERLAP_BESIDE = 16
STORMS_A_CORE = 5
# Second attempts at a time: they are to find the machine calmer than the first ones did.
AGAIN_AT_ONCE = 4
# The next check begins when the loop has come to rest, or after this long.
START_AT_LATEST = 0.5


Done = Callable[[Job, Outcome], None]
_Key = tuple[str, str, int]


def _key(job: Job) -> _Key:
    return job.check, job.variant, job.repeat


def overlap_for(scale: float, *, storms: bool = False, runners: int = 1) -> int:
    """How many checks of one of so many runners wait at the same time.

    Storms are at work all the time, each on a deployment of its own.
    """
    scaled = OVERLAP_SCALED if runners == 1 else OVERLAP_BESIDE
    most = OVERLAP_SPEC_TIME if scale >= 1 else scaled
    return min(most, max(1, STORMS_A_CORE * (os.cpu_count() or 1) // runners)) if storms else most


class Scheduler:
    def __init__(
        self,
        deployments: Deployments,
        audit: Audit,
        stream: Stream,
        overlap: int,
        done: Done | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._deployments = deployments
        self._audit = audit
        self._stream = stream
        self._waiting_lane = asyncio.Semaphore(overlap)
        self._tokens = tokens or OwnTokens()
        self._door = asyncio.Lock()
        self._untried: set[_Key] = set()
        self._all_tried = asyncio.Event()
        self._blocked_twice: set[tuple[str, str]] = set()
        self._again_lane = asyncio.Semaphore(AGAIN_AT_ONCE)
        self._heavy_again = asyncio.Semaphore(1)
        self._one_variant: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._answer_timeouts: defaultdict[tuple[str, str], AnswerTimeout] = defaultdict(AnswerTimeout)
        self._done = done or (lambda _job, _outcome: None)
        self.tasks: dict[_Key, asyncio.Task[Outcome]] = {}

    async def run(self, jobs: Sequence[Job]) -> None:
        rest = sorted(jobs, key=lambda job: (job.turn, job.repeat, -job.planned))
        overlapped = [job for job in rest if not job.needs_all]
        self._untried = {_key(job) for job in overlapped}
        tasks = [self._tracked(job, self._overlapped(job)) for job in overlapped]
        await asyncio.gather(*tasks, return_exceptions=True)
        alone = sorted((job for job in rest if job.needs_all), key=lambda job: job.spec.isolation == "disruptive")
        if alone and tasks:
            await self._settle(alone)
        for job in alone:
            await self._alone(job)

    async def _settle(self, alone: Sequence[Job]) -> None:
        """Wait until the target has forgotten the checks before, and say so: nothing else happens meanwhile."""
        seconds = alone[0].timings.evaluate(alone[0].catalogue.settle)
        those = len({job.check for job in alone})
        why = f"the target to forget the checks so far; {those} more run alone, one after the other"
        self._stream.emit(RunWaiting(waiting_for=why, for_s=round(seconds, 1)))
        await asyncio.sleep(seconds)

    async def _alone(self, job: Job) -> None:
        """A mutant's last check may be cancelled by its own verdict; the run goes on."""
        await asyncio.gather(self._tracked(job, self._by_itself(job)), return_exceptions=True)

    def cancel_variant(self, variant: str) -> None:
        """A mutant that was killed needs no further checks."""
        for (_, its_variant, _), task in self.tasks.items():
            if its_variant == variant:
                task.cancel()

    def _tracked(self, job: Job, work: Awaitable[Outcome]) -> asyncio.Task[Outcome]:
        task = asyncio.ensure_future(work)
        self.tasks[_key(job)] = task
        task.add_done_callback(lambda _ended: self._tried(_key(job)))  # also if it was cancelled
        return task

    async def _overlapped(self, job: Job) -> Outcome:
        """One attempt beside others, and one more, visibly, when the first was inconclusive."""
        URGENCY.set(job.urgency)
        async with self._slot(job):
            outcome = await self._attempt(job, 1)
        self._tried(_key(job))
        if outcome.verdict is not Verdict.INCONCLUSIVE:
            return self._final(job, outcome)
        await self._all_tried.wait()
        async with self._again_lane, self._heavy_again if job.weight else contextlib.nullcontext():
            return await self._again(job, outcome)

    async def _by_itself(self, job: Job) -> Outcome:
        """The same for a check that nothing runs beside."""
        outcome = await self._attempt(job, 1)
        if outcome.verdict is not Verdict.INCONCLUSIVE:
            return self._final(job, outcome)
        return await self._again(job, outcome)

    async def _again(self, job: Job, first: Outcome) -> Outcome:
        """The second attempt; none where the same cause has blocked a check in both of its attempts already."""
        if (job.variant, first.blocked_by) in self._blocked_twice:
            return self._final(job, first)
        self._report(job, first, final=False)
        outcome = await self._attempt(job, 2)
        if outcome.blocked_by and outcome.blocked_by == first.blocked_by:
            self._blocked_twice.add((job.variant, outcome.blocked_by))
        return self._final(job, outcome)

    @contextlib.asynccontextmanager
    async def _slot(self, job: Job) -> AsyncIterator[None]:
        """Have a place for a first attempt, in the lane that fits the check."""
        if job.weight:
            async with self._one_variant[job.check], self._tokens.place("work", job.weight):
                yield
            return
        async with self._waiting_lane:
            async with self._door:
                await self._audit.calm(START_AT_LATEST)
            yield

    def _tried(self, key: _Key) -> None:
        self._untried.discard(key)
        if not self._untried:
            self._all_tried.set()

    def _final(self, job: Job, outcome: Outcome) -> Outcome:
        self._report(job, outcome, final=True)
        return outcome

    async def _attempt(self, job: Job, attempt: int) -> Outcome:
        self._stream.emit(
            CheckStarted(
                check=job.check,
                title=job.spec.title,
                planned_s=round(job.planned, 3),
                attempt=attempt,
                repeat=job.repeat,
                variant=job.variant,
            )
        )
        leased: list[Deployment] = []

        async def lease(job: Job = job) -> Deployment:
            leased.append(await self._deployments.lease(job.wanted, job.target, job.timings))
            return leased[-1]

        other = job.on_the_other if job.against else None
        try:
            around = self._surroundings(job, await lease(), lease)
            beside = self._surroundings(other, await lease(other), partial(lease, other)) if other else None
        except NotObservable as hidden:
            await self._give_back(leased)
            return Outcome(Verdict.NOT_OBSERVABLE, attempt, str(hidden), blocked_by=hidden.blocks)
        except Exception as error:  # noqa: BLE001 - a deployment that does not start is a verdict, not a crash
            await self._give_back(leased)
            return Outcome.error(attempt, f"the deployment did not start: {error}")
        try:
            outcome = await perform(job, attempt, around, beside)
        finally:
            trouble = await asyncio.shield(self._give_back(leased))
        if not trouble or outcome.verdict is Verdict.ERROR:
            return outcome
        untidy = f"the deployment could not be taken down: {trouble}"
        if outcome.unsafe:  # nothing that happens afterwards takes it back
            return replace(outcome, further=(*outcome.further, untidy))
        return Outcome.error(attempt, untidy)

    async def _give_back(self, leased: Sequence[Deployment]) -> str:
        """Give all of them back; what kept one from being taken down whole comes back as text."""
        done = await asyncio.gather(*(self._deployments.give_back(one) for one in leased), return_exceptions=True)
        return "; ".join(str(error) or type(error).__name__ for error in done if isinstance(error, Exception))

    def _surroundings(
        self, job: Job, deployment: Deployment, lease: Callable[[], Awaitable[Deployment]]
    ) -> Surroundings:
        def say_waiting(what: str, seconds: float) -> None:
            until = round(seconds, 2)
            waiting = CheckWaiting(
                check=job.check, repeat=job.repeat, variant=job.variant, waiting_for=what, until_s=until
            )
            self._stream.show(waiting)

        answer_timeout = self._answer_timeouts[job.target.name, job.variant]
        return Surroundings(deployment, lease, self._audit, answer_timeout, say_waiting)

    def _report(self, job: Job, outcome: Outcome, *, final: bool) -> None:
        decided = decided_rows(job, outcome)
        entry = listed(job.spec, job.target, decided)
        outcome = excuse(outcome, entry, dt.datetime.now(dt.UTC).date())
        evidence = outcome.evidence
        self._stream.emit(
            CheckFinished(
                check=job.check,
                title=job.spec.title,
                attempt=outcome.attempt,
                repeat=job.repeat,
                variant=job.variant,
                final=final,
                verdict=outcome.verdict,
                kind=outcome.kind,
                reason=outcome.reason,
                verifies=list(job.spec.claims),
                started_s=round(outcome.started - self._stream.started, 4),
                duration_s=round(outcome.duration, 4),
                planned_s=round(job.planned, 3),
                isolation=job.spec.isolation,
                expected=list(outcome.expected),
                seen=outcome.seen,
                further=list(outcome.further),
                blocked_by=outcome.blocked_by or None,
                unsafe=outcome.unsafe,
                transcript=list(evidence.transcript),
                transcript_dropped=evidence.dropped,
                timings=list(evidence.timings),
                warnings=list(evidence.warnings),
                faults=list(evidence.faults),
                steps=list(evidence.steps),
                walk=evidence.walk,
                schedule=evidence.schedule,
                decided=None if decided is None else list(decided),
                command=job.command,
                known=reported(entry),
            )
        )
        if final:
            self._done(job, outcome)
