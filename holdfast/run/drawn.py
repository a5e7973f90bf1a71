"""Drawn mutants: mechanical changes of the reference that no row names, against the whole suite.

The rate of them that the suite kills is its power of detection. So a kill has to be a kill, and a survivor one:

1. A mutant that does not start is stillborn. It says nothing about the suite, so the next one is drawn for it. One that
   is argued to be equivalent is shown, not run, and leaves the rate.
2. Every check may kill, in the order of the mutant: first those of rows whose listed mutants break the same function,
   then the same module, then all others, each group the cheapest first. The first `fail` or `warn` ends it.
3. A survivor meets some hundred checks, so a rare false alarm would kill it sooner or later. A kill counts when the
   same check says so of the mutant a second time, and not of a clean copy. Otherwise the mutant goes on with the checks
   that it has not met, without that one.
4. A check that could not judge has one more turn, when all others had theirs. A survivor names those that still could
   not.
5. A mutant that has used up its check time (`--cap`) has survived, and says so.

Walks take part like checks, behind those that are near the mutant; with `--by walks` they are alone. One that found
something is not made short: which mutant it was is known already. Few run at a time, because a walk works as much as
it waits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from holdfast.check.walk.order import Order
from holdfast.run.events import MutantPlan, PlanMade, Stillborn
from holdfast.run.harness import Harness
from holdfast.run.job import Job
from holdfast.run.mutation import ALARMS, CLEAN, CollectedCheck, KillMatrix, Trial
from holdfast.run.options import KilledBy, RunOptions
from holdfast.run.perform import Outcome
from holdfast.run.scheduler import Scheduler
from holdfast.run.stream import Stream
from holdfast.run.tokens import Tokens
from holdfast.spec.catalogue import Catalogue, seconds
from holdfast.spec.verdict import Verdict
from holdfast.target.descriptor import Target

WALKS_AT_ONCE = 6
_CONFIRMING = 2
_SHOWN = 5
# How often a kill that could neither be confirmed nor refuted is tried again.
_MOST_DOUBTS = 2
_UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.ERROR})


@dataclass(frozen=True)
class Candidate:
    """A mutant that may be judged; `likely` are sets of rows whose checks may see it, the most likely first."""

    plan: MutantPlan
    likely: Sequence[frozenset[str]] = ()

    def rank(self, check: CollectedCheck) -> int:
        """How early the check has its turn: 0 comes first. A walk, which is near everything, comes with the others."""
        if check.spec.walks:
            return len(self.likely)
        return next((place for place, rows in enumerate(self.likely) if rows & check.rows), len(self.likely))


@dataclass
class DrawnTrial(Trial):
    """What is known of one drawn mutant so far; `met` are the checks that are through with it.

    `unsure` are those of them that could not judge, which have another turn behind all others.
    """

    likely: Candidate = field(default_factory=lambda: Candidate(MutantPlan()))
    met: set[str] = field(default_factory=set)
    unsure: dict[str, Verdict] = field(default_factory=dict)
    turns: int = 0
    spent_s: float = 0.0
    confirmed: set[str] = field(default_factory=set)
    doubts: int = 0
    capped: bool = False

    @property
    def killed(self) -> bool:
        return bool(self.confirmed)

    @property
    def open(self) -> bool:
        return not (self.mutant.excluded or self.killed or self.capped)

    def ended(self, check: str, outcome: Outcome) -> None:
        """Note that a check has ended; one that could not judge comes again, but only once."""
        self.turns += 1
        self.spent_s += outcome.duration
        if outcome.verdict is not Verdict.INCONCLUSIVE or check in self.unsure:
            self.met.add(check)
        if outcome.verdict in _UNDECIDED:
            self.unsure[check] = outcome.verdict
        else:
            self.unsure.pop(check, None)

    def open_questions(self, checks: int) -> list[str]:
        """What keeps a survivor from being one beyond doubt."""
        if self.killed or self.mutant.excluded:
            return []
        unsure = [f"{check.rpartition('::')[2]} ({verdict})" for check, verdict in sorted(self.unsure.items())]
        shown = ", ".join(unsure[:_SHOWN]) + (f" and {len(unsure) - _SHOWN} more" if len(unsure) > _SHOWN else "")
        return [f"{len(unsure)} of {checks} checks could not judge it: {shown}"] if unsure else []


class DrawnMatrix(KillMatrix):
    """Judges `wanted` of the candidates, more precisely the first of them that start."""

    def __init__(
        self,
        options: RunOptions,
        target: Target,
        catalogue: Catalogue,
        candidates: Iterator[Candidate],
        wanted: int,
        checks: Sequence[CollectedCheck],
        stream: Stream,
        tokens: Tokens | None = None,
    ) -> None:
        if options.by is KilledBy.WALKS:
            options = replace(options, overlap=WALKS_AT_ONCE)
        super().__init__(options, target, catalogue, (), checks, stream, tokens)
        self._candidates = candidates
        self._wanted = wanted
        self._drawn: dict[str, DrawnTrial] = {}
        self._stillborn: list[Stillborn] = []
        self._tried_clean: set[str] = set()

    def _begin(self, covered: int) -> None:
        """Announce nothing yet: which mutants there are is known when they have been started."""

    def _judge(self, harness: Harness, covered: int) -> None:
        self._draw(harness)
        self._trials.update(self._drawn)
        jobs = self._suite()
        self._stream.emit(self._announced(jobs, covered))
        turns = -1
        while (jobs or self._caught()) and turns < (
            turns := self._turns()
        ):  # a round in which no check ended would come again for ever
            self._run_jobs(harness, jobs)
            self._run_jobs(harness, self._confirming())
            self._settle()
            jobs = self._suite()
        for trial in self._drawn.values():
            trial.notes += trial.open_questions(len(self._checks))

    def _turns(self) -> int:
        return sum(trial.turns for trial in self._drawn.values())

    def _announced(self, jobs: Sequence[Job], covered: int) -> PlanMade:
        """The plan for the worst case, in which every mutant meets every check."""
        return replace(super()._announced(jobs, covered), requirements=0, stillborn=self._stillborn)

    def _draw(self, harness: Harness) -> None:
        """Take candidates until as many as wanted have started; those that did not are noted apart."""
        while len(self._drawn) < self._wanted:
            batch = list(islice(self._candidates, self._wanted - len(self._drawn)))
            if not batch:
                return
            start = [each.plan.id for each in batch if not each.plan.excluded]
            dead = harness.stillborn(start, self._target, self._timings)
            for each in batch:
                plan = each.plan
                if plan.id not in dead:
                    self._drawn[plan.id] = DrawnTrial(plan, likely=each)
                elif plan.drawn:
                    self._stillborn.append(Stillborn(plan.id, dead[plan.id].splitlines()[0], plan.drawn.diff))

    def _suite(self) -> list[Job]:
        """Every check that an open mutant has not met yet, in the mutant's own order."""
        jobs = []
        for trial in self._drawn.values():
            if trial.open and not trial.by:
                order = self._order_of(trial)
                jobs += [self._job(check, trial.mutant.id, turn=turn) for turn, check in enumerate(order, 1)]
        return jobs

    def _job(self, check: CollectedCheck, variant: str, repeat: int = 1, turn: int = 0) -> Job:
        job = super()._job(check, variant, repeat, turn)
        return replace(job, walk_order=self._walk_of(job)) if check.spec.walks else job

    def _walk_of(self, job: Job) -> Order:
        """As long as was asked for, else as in an ordinary run."""
        if asked := self._options.for_:
            return Order(seconds=seconds(asked), shrink=0.0)
        return Order(seconds=job.planned, shrink=0.0, steps=job.spec.walk_steps)

    def _order_of(self, trial: DrawnTrial) -> list[CollectedCheck]:
        done = trial.met | self._false_alarms
        left = [check for check in self._checks if check.id not in done]
        return sorted(left, key=lambda check: (trial.likely.rank(check), self._planned(check), check.id))

    def _planned(self, check: CollectedCheck) -> float:
        return self._timings.evaluate(check.spec.waits)

    def _caught(self) -> dict[str, list[str]]:
        """The checks that raised an alarm about a mutant, and have not said so twice yet."""
        return {id_: trial.by for id_, trial in self._drawn.items() if trial.by and not trial.killed}

    def _confirming(self) -> list[Job]:
        """The killing check of each mutant once more, and once on a clean copy."""
        checks = {check.id: check for check in self._checks}
        caught = self._caught()
        clean = {check for by in caught.values() for check in by} - self._tried_clean
        self._tried_clean |= clean
        again = [self._job(checks[each], id_, repeat=_CONFIRMING) for id_, by in caught.items() for each in by]
        return [*again, *(self._job(checks[each], CLEAN) for each in sorted(clean))]

    def _settle(self) -> None:
        """Keep the kills that were confirmed, or may still be; what raised a false alarm has killed nothing."""
        for trial in self._drawn.values():
            trial.confirmed -= self._false_alarms
            trial.by = sorted(trial.confirmed) or [check for check in trial.by if check not in self._false_alarms]

    def _watch(self, scheduler: Scheduler, job: Job, outcome: Outcome) -> None:
        alarm = outcome.verdict in ALARMS
        if job.variant == CLEAN:
            self._false_alarms |= {job.check} if alarm else set()
            return
        trial = self._drawn[job.variant]
        trial.ended(job.check, outcome)
        if job.repeat == _CONFIRMING:
            self._confirm(trial, job, outcome, alarm=alarm)
        elif alarm:
            trial.by.append(job.check)
            if not self._options.all_checks:
                scheduler.cancel_variant(job.variant)
        self._hold_to_the_cap(scheduler, trial)

    def _confirm(self, trial: DrawnTrial, job: Job, outcome: Outcome, *, alarm: bool) -> None:
        if alarm:
            trial.confirmed.add(job.check)
        elif outcome.verdict is Verdict.INCONCLUSIVE and trial.doubts < _MOST_DOUBTS:
            trial.doubts += 1
        else:
            trial.by.remove(job.check)
            trial.notes.append(f"{job.check.rpartition('::')[2]}: an alarm, then {outcome.verdict}")

    def _hold_to_the_cap(self, scheduler: Scheduler, trial: DrawnTrial) -> None:
        if trial.spent_s > self._options.cap_s and not trial.by and not trial.capped:
            trial.capped = True
            left = len({check.id for check in self._checks} - trial.met)
            trial.notes.append(f"its check time of {self._options.cap} is used up; {left} checks did not run")
            scheduler.cancel_variant(trial.mutant.id)
