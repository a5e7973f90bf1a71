"""One run of the suite against one target, from the plan to the last event."""

import datetime as dt
import platform
import re
import shlex
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from holdfast import __version__
from holdfast.catalogue import builtin, seconds
from holdfast.chaos.storm import load_for
from holdfast.check import CheckSpec
from holdfast.perform import Outcome
from holdfast.plan import Plan, PlanError, Selection, make_plan, plan_fields, within_budget
from holdfast.preflight import not_there
from holdfast.scheduler import Job, overlap_for
from holdfast.stream import Stream
from holdfast.suite import checks_of
from holdfast.target import Target, builtin_path, load
from holdfast.verdict import WORST_FIRST, Verdict
from holdfast.wiring import Engine, EngineOptions

_QUIET = frozenset({Verdict.WARN, Verdict.KNOWN, Verdict.PARTIAL, Verdict.NOT_OBSERVABLE, Verdict.NOT_APPLICABLE})
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Options:
    target: str
    time_scale: float | None
    profile: str | None
    selection: Selection
    results: Path | None
    launcher: str
    redis_url: str | None
    repeat: int
    stress: int
    overlap: int | None
    budget: float | None
    seed: int
    violate: str | None = None
    scenarios: bool = False
    engine: str = "relay"
    schedule: Path | None = None
    random: int = 0

    @classmethod
    def from_pytest(cls, config: pytest.Config) -> "Options":
        get = config.getoption
        return cls(
            target=get("target"),
            time_scale=get("time_scale"),
            profile=get("profile"),
            selection=Selection(tuple(get("only")), get("level")),
            results=get("results"),
            launcher=get("launcher"),
            redis_url=get("redis_url"),
            repeat=get("repeat"),
            stress=get("stress"),
            overlap=get("overlap"),
            budget=seconds(get("budget")) if get("budget") else None,
            seed=get("seed"),
            violate=get("violate"),
            scenarios=get("scenarios"),
            engine=get("engine"),
            schedule=get("schedule"),
            random=get("random"),
        )


class CheckSession:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.target = _target(options)
        self.catalogue = builtin(self.target.spec)
        self.timings = self.target.timings(self.catalogue)
        self.overlap = options.overlap or overlap_for(self.target.time_scale, storms=bool(options.random))
        events = options.results / "events.jsonl" if options.results else None
        self.stream = Stream(events)
        self._plan = Plan()
        self._engine: Engine | None = None
        self._outcomes: dict[str, list[Outcome]] = {}
        self._clock = time.time() - time.monotonic()
        self.interrupted: str | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._judging = False
        self._started = time.monotonic()
        self._announced = False

    def look_before(self) -> None:
        if problem := not_there(self.target):
            pytest.exit(problem, returncode=2)

    def plan(self, checks: Mapping[str, CheckSpec], deselected: frozenset[str]) -> frozenset[str]:
        """`checks` are those that pytest collected; the others are left out by the user too, by file or node id."""
        collected = {id_.partition("[")[0] for id_ in checks}
        suite = checks_of(self.target.spec, scenarios=self.options.scenarios)
        others = {id_: spec for id_, spec in suite.items() if id_ not in collected}
        everything, left_out = {**others, **checks}, deselected | others.keys()
        whole = not self.options.scenarios
        self._plan = make_plan(self.catalogue, self.target, everything, self.options.selection, left_out, whole=whole)
        if self.options.budget:
            within_budget(self._plan, lambda spec: self.timings.evaluate(spec.waits), self.options.budget, self.overlap)
        if not self._plan.rows:
            raise PlanError("no requirement is left to run; holdfast requirements lists what there is")
        return frozenset(self._plan.checks)

    def run(self, params: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """The ids of checks as all their repeats have ended."""
        # What was ignored when we came (nohup, a background job) stays ignored.
        heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._handlers = {number: signal.signal(number, self._on_signal) for number in heeded}
        try:
            yield from self._run(params)
        finally:
            self.close()

    def tell(self, check: str) -> None:
        """Say to pytest what came of this check, in pytest's words."""
        worst = self.worst(check)
        if worst.verdict in _QUIET:
            pytest.skip(f"{worst.verdict}: {worst.reason}")
        if worst.verdict is not Verdict.PASS:
            pytest.fail(_finding_text(worst), pytrace=False)

    def times(self, check: str) -> tuple[float, float] | None:
        if check not in self._outcomes:
            return None
        worst = self.worst(check)
        return worst.started + self._clock, worst.duration

    def give_signals_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def close(self) -> None:
        if self._engine is None:
            return
        engine, self._engine = self._engine, None
        audit = engine.audit.report()
        engine.close()
        left = [str(engine.folder)] if engine.folder.exists() else []
        if not self._announced:
            self.stream.close()
            return
        self.stream.emit("run.audit", **audit)
        self.stream.emit(
            "run.finished",
            wall_s=round(time.monotonic() - self._started, 3),
            interrupted=self.interrupted,
            leftovers=left,
        )
        self.stream.close()

    def _run(self, params: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        asked = self.options
        options = EngineOptions(
            asked.launcher,  # type: ignore[arg-type]  # argparse keeps it to the two
            asked.redis_url,
            asked.stress,
            self.overlap,
            faults=asked.engine if asked.scenarios else "links",  # type: ignore[arg-type]  # and this one
            seed=asked.seed,
            schedule=load_for(self.target, asked.schedule) if asked.schedule else None,
        )
        self._engine = engine = Engine(self.target, self.stream, options)
        engine.open()
        if problem := self._cannot_start(engine):
            pytest.exit(problem, returncode=2)
        self._announce()
        self._announced = True
        self._judging = True
        if self.interrupted:
            raise KeyboardInterrupt
        for job, outcome in engine.run(self._jobs(params)):
            done = self._outcomes.setdefault(job.check, [])
            done.append(outcome)
            if len(done) == self.options.repeat:
                yield job.check

    def _cannot_start(self, engine: Engine) -> str | None:
        if not self.target.startable:
            return None
        try:
            engine.try_target(self.target, self.timings)
        except Exception as error:  # noqa: BLE001 - whatever a foreign command does, the user gets one sentence
            return f"{self.target.name} does not start: {error}"
        return None

    def _jobs(self, params: Mapping[str, Mapping[str, Any]]) -> Sequence[Job]:
        return [
            Job(
                check=id_,
                spec=spec,
                target=self.target,
                catalogue=self.catalogue,
                timings=self.timings,
                params=params.get(id_, {}),
                repeat=repeat,
                seed=self.options.seed * 1000 + repeat,
                command=self._repeat_command(spec),
            )
            for repeat in range(1, self.options.repeat + 1)
            for id_, spec in self._plan.checks.items()
        ]

    def _repeat_command(self, spec: CheckSpec) -> str:
        if self.options.scenarios:
            words = ["holdfast", "chaos", self.target.spec, *self._which_scenario(spec)]
        else:
            words = ["holdfast", "run", self.target.spec]
            words += [word for id_ in dict.fromkeys(claim.id for claim in spec.claims) for word in ("--only", id_)]
        if self.target.file and self.target.file != builtin_path(self.target.spec):
            words += ["--target", str(self.target.file)]
        if self.options.scenarios:
            words += ["--engine", self.options.engine, "--seed", str(self.options.seed)]
        if self.options.time_scale is not None:
            words += ["--time-scale", f"{self.options.time_scale:g}"]
        return shlex.join(words)

    def _which_scenario(self, spec: CheckSpec) -> list[str]:
        """`C3` of test_c03_…; a storm is found again by how many were drawn, or by its schedule."""
        if named := re.match(r"test_([a-z]+)0*(\d+)_", spec.function.__name__):
            return [named[1].upper() + named[2]]
        if self.options.schedule:
            return ["--schedule", str(self.options.schedule)]
        return ["--random", str(self.options.random)]

    def _announce(self) -> None:
        target = self.target
        self.stream.emit(
            "run.started",
            schema=1,
            holdfast=__version__,
            run_id=str(uuid.uuid4()),
            specs=[target.spec],
            catalogue={target.spec: self.catalogue.version},
            target={
                "name": target.name,
                "version": target.version,
                "spec": target.spec,
                "file": str(target.file) if target.file and target.file != builtin_path(target.spec) else None,
            },
            profile=target.profile,
            capabilities=sorted(target.capabilities() & target.in_profile()),
            time_scale=target.time_scale,
            seed=self.options.seed,
            launcher=self.options.launcher,
            engine=self.options.engine if self.options.scenarios else None,
            repeat=self.options.repeat,
            stress=self.options.stress,
            python=platform.python_version(),
            platform=platform.platform(terse=True),
            started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            command=shlex.join(["holdfast", *sys.argv[1:]]),
            timings={
                name: {
                    "kind": str(scaled.kind),
                    "value_s": scaled.spec_seconds,
                    "scaled_s": scaled.seconds,
                    "source": scaled.source,
                }
                for name, scaled in self.timings.all().items()
            },
        )
        self.stream.emit("plan", **plan_fields(self._plan, self.catalogue, self.timings, self.overlap))

    def worst(self, check: str) -> Outcome:
        return min(self._outcomes[check], key=lambda outcome: WORST_FIRST.index(outcome.verdict))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.interrupted = signal.Signals(number).name
        ignore_signals()
        if not self._judging or self._engine is None:
            raise KeyboardInterrupt
        self._engine.interrupt()


def ignore_signals() -> None:
    """An impatient second Ctrl-C must not tear what the first one has begun to tidy up."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _target(options: Options) -> Target:
    path = Path(options.target)
    if not path.exists() and builtin_path(options.target).is_file():
        path = builtin_path(options.target)
    target = load(path).at_scale(options.time_scale).with_profile(options.profile)
    if options.violate:
        target = target.with_setting("violate", options.violate)
    return target


def _finding_text(outcome: Outcome) -> str:
    lines = [f"{outcome.verdict}: {outcome.reason}"]
    lines += [f"  expected  {text}" for text in outcome.expected]
    if outcome.seen is not None:
        lines.append(f"  seen      {outcome.seen}")
    lines += [f"  {line}" for line in outcome.transcript_lines()]
    return "\n".join(lines)
