"""One run of a suite against one target, from the plan to the last event.

Whoever collects the checks (the pytest plugin) calls, in this order: `look_before`, `plan`, `run`, `close`. The session
owns the stream and the harness; `tokens` are what it shares with other runners, if any. Its promises:


- `plan` decides everything that can be decided without the target, so that what can't be run (an empty selection, a
  profile without rows) ends before any process is started.
- The first event is written only when the target could be started once, so that a target which can't start is one
  sentence (`CannotRunError`) and not ninety failed rows.
- Checks are handed back as all their repeats have ended, in that order; `worst` is what counts of them.
- `close` ends every process of the run and is safe at any time and twice. Where the run was announced, it also writes
  the audit and the last event, so a stream without a last event belongs to a run that was killed.
- Ctrl-C is noted from `run` on. Until the target was started it ends the run as an exception; afterwards the harness
  ends what runs, every outcome so far is handed back, and the last event names the signal.

Two threads take part: the caller's, in which all of this runs, and the harness's loop, in which checks run. Outcomes
come over one at a time (`Harness.run`), so nothing here needs a lock.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.check.verifies import CheckSpec
from holdfast.run.cost import cores, cpu_seconds
from holdfast.run.estimate import Pace
from holdfast.run.events import Purpose, RunAudit, RunFinished, RunWaiting
from holdfast.run.harness import Harness
from holdfast.run.jobs import jobs_of
from holdfast.run.narrowed import narrowed
from holdfast.run.options import RunOptions
from holdfast.run.perform import Outcome
from holdfast.run.plan import Plan, announced, make_plan, within_budget
from holdfast.run.plan_announcement import run_started
from holdfast.run.selection import PlanError
from holdfast.run.signals import Signals
from holdfast.run.stream import Stream
from holdfast.run.suite import checks_of
from holdfast.run.tokens import Tokens
from holdfast.spec.catalogue import builtin
from holdfast.spec.verdict import WORST_FIRST
from holdfast.target.preflight import not_there

# A target that takes longer than this to start is told of, so that nobody wonders at a silent screen.
TELL_AFTER = 2.0


class CannotRunError(Exception):
    """There is nothing to judge: the target is not there, or does not start. The text is for the user."""


class CheckSession:
    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.tokens: Tokens | None = None
        self.target = options.read_target()
        self.catalogue = builtin(self.target.spec)
        self.timings = self.target.timings(self.catalogue)
        self.stream = Stream(options.results)
        self.signals = Signals()
        self._plan = Plan()
        self._harness: Harness | None = None
        self._outcomes: dict[str, list[Outcome]] = {}
        self._clock = time.time() - time.monotonic()
        self._started = time.monotonic()
        self._announced = False

    def look_before(self) -> None:
        """Raises CannotRunError if nothing answers at the target's URLs, before pytest collects anything."""
        if problem := not_there(self.target):
            raise CannotRunError(problem)

    def plan(self, checks: Mapping[str, CheckSpec], deselected: frozenset[str]) -> frozenset[str]:
        """Plans the run and returns the ids of the checks that belong to it.

        `checks` are those that were collected; the others were left out by the user too, by file or node id. They are
        part of the plan all the same: a row of which a check was left out can only be `partial`.
        """
        options = self.options
        others = {} if options.scenarios or options.walks else self._not_collected(checks)
        everything, left_out = {**others, **checks}, deselected | others.keys()
        whole = not (options.scenarios or options.walks)
        self._plan = make_plan(self.catalogue, self.target, everything, options.selection, left_out, whole=whole)
        if options.budget_s:
            within_budget(self._plan, self._pace, options.budget_s)
        self._plan.narrowed = narrowed(options, left_out, budget=bool(self._plan.left_out))
        if not self._plan.rows:
            profile = self.target.profile
            raise PlanError(f"no requirement is left to run in profile {profile}; see holdfast requirements")
        return frozenset(self._plan.checks)

    @property
    def _pace(self) -> Pace:
        options, overlap = self.options, self.options.overlap_at(self.target.time_scale)
        return Pace(self.target, self.catalogue, self.timings, overlap, options.repeat, options.walk_order)

    def _not_collected(self, checks: Mapping[str, CheckSpec]) -> dict[str, CheckSpec]:
        """The checks of the suite that were left out by file or node id."""
        collected = {id_.partition("[")[0] for id_ in checks}
        return {id_: spec for id_, spec in checks_of(self.target.spec).items() if id_ not in collected}

    def run(self, params: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """Runs the plan; yields the id of each check when all its repeats have ended. `params` are pytest's."""
        self.signals.take()
        try:
            yield from self._run(params)
        finally:
            self.close()

    def worst(self, check: str) -> Outcome:
        """Returns the outcome that decides over a repeated check."""
        return min(self._outcomes[check], key=lambda outcome: WORST_FIRST.index(outcome.verdict))

    def times(self, check: str) -> tuple[float, float] | None:
        """Returns when the deciding repeat began, in seconds since the epoch, and how long it took."""
        if check not in self._outcomes:
            return None
        worst = self.worst(check)
        return worst.started + self._clock, worst.duration

    def close(self) -> None:
        """Ends every process of the run and writes the last events. A second call does nothing."""
        if self._harness is None:
            return
        # The audit is asked first, while there is a loop to ask; the folder is looked for last, when it should be gone.
        harness, self._harness = self._harness, None
        audit = harness.audit.report()
        harness.close()
        self.signals.hand_to(None)
        if self._announced:
            self.stream.emit(RunAudit(**audit))
            self.stream.emit(
                RunFinished(
                    wall_s=round(time.monotonic() - self._started, 3),
                    cpu_s=cpu_seconds(),
                    cores=cores(),
                    interrupted=self.signals.name,
                    leftovers=[str(harness.folder)] if harness.folder.exists() else [],
                )
            )
        self.stream.close()

    def _run(self, params: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        self._harness = harness = Harness(self.target, self.stream, self.options, tokens=self.tokens)
        harness.open()
        self._start_once(harness)
        self._announce()
        self.signals.hand_to(harness.interrupt)
        if self.signals.name:  # it came while the target was started, and nobody has acted on it yet
            raise KeyboardInterrupt
        jobs = jobs_of(self._plan, params, self.options, self.target, self.catalogue, self.timings)
        for job, outcome in harness.run(jobs):
            done = self._outcomes.setdefault(job.check, [])
            done.append(outcome)
            if len(done) == self.options.repeat:
                yield job.check

    def _start_once(self, harness: Harness) -> None:
        """Starts the target and tries its credentials; raises CannotRunError with the sentence for the user."""
        slow = threading.Timer(TELL_AFTER, self._tell_slow_start)
        slow.start()
        try:
            problem = harness.try_target(self.target, self.catalogue)
        except Exception as error:
            raise CannotRunError(f"{self.target.name} does not start: {error}") from error
        finally:
            slow.cancel()
            slow.join()  # what it shows comes before all that is shown from here on
        if problem:
            raise CannotRunError(problem)

    def _tell_slow_start(self) -> None:
        self.stream.show(RunWaiting(waiting_for=f"{self.target.name} to be ready"))

    def _announce(self) -> None:
        options = self.options
        purpose: Purpose = "chaos" if options.scenarios else "walks" if options.walks else "conformance"
        self.stream.emit(run_started(options, self.target, self.catalogue, self.timings, purpose))
        self.stream.emit(announced(self._plan, self.catalogue, self._pace))
        self._announced = True
