"""The kill matrix: every mutant against the checks of its own requirement, on the scheduler of any other run.

A mutant is killed when a check of its own row says `fail` or `warn`; its other checks are cancelled then, unless every
check was asked for. A check that says so of an unbroken copy too has proven nothing, so one clean copy runs for every
ten mutants, with the checks that judge those ten. A false alarm there voids every kill of that check, and the checks
that were cancelled because of such a kill get their turn in a second round. So do the checks of a mutant that nobody
caught while some of them could not judge: only what was judged survives.

The run writes the same stream as any other. `variant` names the mutant of a check, a clean copy has none, and each
mutant ends in one `MutantJudged`; a run that is killed before has mutants that were planned and never judged.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.check.verifies import CheckSpec
from holdfast.run.cost import cores, cpu_seconds
from holdfast.run.events import MutantJudged, MutantPlan, MutantStatus, PlanMade, RunAudit, RunFinished
from holdfast.run.harness import Harness
from holdfast.run.job import Job
from holdfast.run.options import RunOptions
from holdfast.run.perform import Outcome
from holdfast.run.plan_announcement import run_started
from holdfast.run.scheduler import Scheduler
from holdfast.run.signals import Signals
from holdfast.run.stream import Stream
from holdfast.run.tokens import Tokens
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.verdict import Verdict
from holdfast.target.descriptor import Target

MUTANTS_PER_CLEAN_COPY = 10
ALARMS = frozenset({Verdict.FAIL, Verdict.WARN})
CLEAN = ""


@dataclass(frozen=True)
class CollectedCheck:
    """A check as pytest collected it, with its parameters."""

    id: str
    spec: CheckSpec
    params: Mapping[str, Any]

    @property
    def rows(self) -> set[str]:
        return {claim.id for claim in self.spec.claims}


@dataclass
class Trial:
    """What is known of one mutant so far."""

    mutant: MutantPlan
    by: list[str] = field(default_factory=list)
    also: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    undecided: bool = False

    def judged(self, *, all_checks: bool) -> MutantJudged:
        mutant = self.mutant
        status: MutantStatus = "excluded" if mutant.excluded else "killed" if self.by else "survived"
        return MutantJudged(
            id=mutant.id,
            requirement=mutant.requirement,
            violation=mutant.violation,
            status=status,
            by=self.by,
            also=sorted(self.also) if all_checks else None,
            declared=mutant.declared,
            reason=mutant.excluded or "; ".join(self.notes),
            drawn=mutant.drawn,
        )


class KillMatrix:
    def __init__(
        self,
        options: RunOptions,
        target: Target,
        catalogue: Catalogue,
        mutants: Sequence[MutantPlan],
        checks: Sequence[CollectedCheck],
        stream: Stream,
        tokens: Tokens | None = None,
    ) -> None:
        self._options = options
        self._tokens = tokens
        self._target = target
        self._catalogue = catalogue
        self._timings = target.timings(catalogue)
        self._checks = checks
        self._stream = stream
        self._trials = {mutant.id: Trial(mutant) for mutant in mutants}
        self._false_alarms: set[str] = set()
        self._signals = Signals()
        self._started = time.monotonic()

    def run(self, covered: int, preload: Sequence[str]) -> None:
        """`covered` violations have a mutant or a reason for none; `preload` are the modules of the mutants."""
        self._stream.emit(
            run_started(self._options, self._target, self._catalogue, self._timings, purpose="mutants"),
        )
        self._begin(covered)
        self._signals.take()
        harness = Harness(self._target, self._stream, self._options, preload, self._tokens)
        leftovers: list[str] = []
        try:
            harness.open()
            self._signals.hand_to(harness.interrupt)
            self._judge(harness, covered)
            for trial in self._trials.values():
                self._stream.emit(trial.judged(all_checks=self._options.all_checks))
        finally:
            audit = harness.audit.report()
            harness.close()
            leftovers = [str(harness.folder)] if harness.folder.exists() else []
            self._finish(audit, leftovers)
            self._signals.give_back()

    def _begin(self, covered: int) -> None:
        """Announce the plan, before anything is started."""
        self._stream.emit(self._announced(self._first_round(), covered))

    def _judge(self, harness: Harness, covered: int) -> None:  # noqa: ARG002 - for those who announce here
        self._run_jobs(harness, self._first_round())
        self._run_jobs(harness, self._second_round())
        self._void_false_kills()

    def _run_jobs(self, harness: Harness, jobs: Sequence[Job]) -> None:
        for _ in harness.run(jobs, self._watch):
            pass

    def _finish(self, audit: dict[str, Any], leftovers: list[str]) -> None:
        wall = round(time.monotonic() - self._started, 3)
        self._stream.emit(RunAudit(**audit))
        self._stream.emit(
            RunFinished(
                wall_s=wall,
                cpu_s=cpu_seconds(),
                cores=cores(),
                interrupted=self._signals.name,
                leftovers=leftovers,
            )
        )
        self._stream.close()

    def _announced(self, jobs: Sequence[Job], covered: int) -> PlanMade:
        overlap = self._options.overlap_at(self._target.time_scale)
        planned = [job.planned for job in jobs]
        return PlanMade(
            requirements=len({trial.mutant.requirement for trial in self._trials.values()}),
            checks=len({job.check for job in jobs}),
            overlap=overlap,
            planned_wall_s=round(max(max(planned, default=0.0), sum(planned) / overlap), 1),
            planned_sum_s=round(sum(planned), 1),
            mutants=[trial.mutant for trial in self._trials.values()],
            covered_violations=covered,
            violations=sum(len(row.violations) for row in self._catalogue),
        )

    def _first_round(self) -> list[Job]:
        jobs: list[Job] = []
        for number, trial in enumerate(self._trials.values()):
            if trial.mutant.excluded:
                continue
            jobs += [self._job(check, trial.mutant.id) for check in self._checks_for(trial)]
            if number % MUTANTS_PER_CLEAN_COPY == 0:
                jobs += self._clean_jobs(number)
        return jobs

    def _second_round(self) -> list[Job]:
        again = [trial for trial in self._trials.values() if trial.by or trial.undecided]
        self._void_false_kills()
        return [
            self._job(check, trial.mutant.id, repeat=2)
            for trial in again
            if not trial.by
            for check in self._own_checks(trial)
            if check.id not in self._false_alarms
        ]

    def _void_false_kills(self) -> None:
        for trial in self._trials.values():
            trial.by = [check for check in trial.by if check not in self._false_alarms]

    def _clean_jobs(self, number: int) -> list[Job]:
        """The checks that judge the next ten mutants, against an unbroken copy."""
        batch = list(self._trials.values())[number : number + MUTANTS_PER_CLEAN_COPY]
        checks = {check.id: check for trial in batch for check in self._own_checks(trial)}
        return [self._job(check, CLEAN, repeat=number + 1) for check in checks.values()]

    def _checks_for(self, trial: Trial) -> Sequence[CollectedCheck]:
        return self._checks if self._options.all_checks else self._own_checks(trial)

    def _own_checks(self, trial: Trial) -> list[CollectedCheck]:
        return [check for check in self._checks if trial.mutant.requirement in check.rows]

    def _job(self, check: CollectedCheck, variant: str, repeat: int = 1, turn: int = 0) -> Job:
        return Job(
            check=check.id,
            spec=check.spec,
            target=self._target,
            catalogue=self._catalogue,
            timings=self._timings,
            params=check.params,
            repeat=repeat,
            variant=variant,
            seed=self._options.seed,
            turn=turn,
        )

    def _watch(self, scheduler: Scheduler, job: Job, outcome: Outcome) -> None:
        """Note what came of one check, on the loop, before anybody else hears of it."""
        alarm = outcome.verdict in ALARMS
        if job.variant == CLEAN:
            if alarm:
                self._false_alarms.add(job.check)
            return
        trial = self._trials[job.variant]
        rows = {claim.id for claim in job.spec.claims}
        if alarm and trial.mutant.requirement in rows:
            trial.by.append(job.check)
            if not self._options.all_checks:
                scheduler.cancel_variant(job.variant)
        elif alarm:
            trial.also |= rows
        elif outcome.verdict is not Verdict.PASS:
            trial.undecided = trial.undecided or outcome.verdict is Verdict.INCONCLUSIVE
            trial.notes.append(f"{job.check}: {outcome.verdict} {outcome.reason.strip().splitlines()[-1:]}")
