"""`holdfast mutants`: every deliberately broken server against the checks of its own requirement."""

import importlib
import json
import os
import pkgutil
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from holdfast.catalogue import Catalogue, CatalogueError, builtin
from holdfast.check import CheckSpec, spec_of
from holdfast.perform import Outcome
from holdfast.plugin import check_id, params_of
from holdfast.scheduler import Job, Scheduler, overlap_for
from holdfast.stream import Stream
from holdfast.target import Target, builtin_path, load
from holdfast.verdict import Verdict
from holdfast.wiring import Engine, EngineOptions

# One clean copy for so many mutants: a check that raises a false alarm there has killed nothing.
MUTANTS_PER_CLEAN_COPY = 10
_ALARMS = frozenset({Verdict.FAIL, Verdict.WARN})
_CLEAN = ""


@dataclass
class Mutant:
    id: str
    text: str
    by: list[str] = field(default_factory=list)
    also: set[str] = field(default_factory=set)
    declared: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    undecided: bool = False
    excluded: str | None = None

    @property
    def requirement(self) -> str:
        return self.id.split("/")[0]

    @property
    def status(self) -> str:
        if self.excluded:
            return "excluded"
        return "killed" if self.by else "survived"


@dataclass(frozen=True)
class Collected:
    id: str
    spec: CheckSpec
    params: Mapping[str, Any]


class _Collector:
    """Takes the items that pytest collected instead of running them."""

    def __init__(self) -> None:
        self.found: list[Collected] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            if spec := spec_of(getattr(item, "function", None)):
                self.found.append(Collected(check_id(item), spec, params_of(item)))


def kill_matrix(
    key: str,
    *,
    only: tuple[str, ...],
    sample: int | None,
    seed: int,
    all_checks: bool,
    time_scale: float | None,
    as_json: bool,
) -> int:
    catalogue, target = builtin(key), load(builtin_path(key)).at_scale(time_scale)
    everyone = _mutants(key, catalogue)
    chosen = _choose(everyone, only, sample, seed)
    checks = _collect(key)
    matrix = _Matrix(catalogue, target, checks, chosen, all_checks=all_checks, seed=seed)
    matrix.run(show=not as_json)
    summary = matrix.summary(covered=len(everyone), violations=sum(len(row.violations) for row in catalogue))
    if as_json:
        print(json.dumps({"mutants": [matrix.fields(mutant) for mutant in chosen], "summary": summary}, indent=1))
    else:
        _print_matrix(chosen, summary)
    return 0 if summary["survived"] == 0 and not summary["false_alarms"] else 1


class _Matrix:
    def __init__(
        self,
        catalogue: Catalogue,
        target: Target,
        checks: Sequence[Collected],
        mutants: Sequence[Mutant],
        *,
        all_checks: bool,
        seed: int,
    ) -> None:
        self.catalogue = catalogue
        self.target = target
        self.timings = target.timings(catalogue)
        self.checks = checks
        self.mutants = {mutant.id: mutant for mutant in mutants}
        self.all_checks = all_checks
        self.seed = seed
        self.false_alarms: dict[str, str] = {}
        self.clean_runs = 0

    def run(self, *, show: bool) -> None:
        jobs = self._jobs()
        modules = _mutant_modules(self.catalogue.key)
        options = EngineOptions(overlap=overlap_for(self.target.time_scale), preload=modules)
        engine = Engine(self.target, Stream(None), options)
        try:
            engine.open()
            with Progress(console=Console(stderr=True), disable=not show) as progress:
                bar = progress.add_task(f"{len(self.mutants)} mutants", total=len(jobs))
                for _ in engine.run(jobs, self._watch):
                    progress.advance(bar)
                for _ in engine.run(self._second_round(), self._watch):
                    progress.advance(bar)
        finally:
            engine.close()
        self._void_false_kills()

    def _void_false_kills(self) -> None:
        for mutant in self.mutants.values():
            mutant.by = [check for check in mutant.by if check not in self.false_alarms]

    def _second_round(self) -> list[Job]:
        """A kill that a false alarm voids had cancelled the other checks: they get their turn now.

        So do the checks of a mutant that nobody caught while some could not judge it: only what was judged survives.
        """
        again = [mutant for mutant in self.mutants.values() if mutant.by or mutant.undecided]
        self._void_false_kills()
        return [
            self._job(check, mutant.id, repeat=2)
            for mutant in again
            if not mutant.by
            for check in self._own_checks(mutant)
            if check.id not in self.false_alarms
        ]

    def summary(self, *, covered: int, violations: int) -> dict[str, Any]:
        by_status = {
            status: sum(mutant.status == status for mutant in self.mutants.values())
            for status in ("killed", "survived", "excluded")
        }
        return {
            **by_status,
            "mutants": len(self.mutants),
            "covered_violations": covered,
            "violations": violations,
            "clean_runs": self.clean_runs,
            "false_alarms": self.false_alarms,
        }

    def fields(self, mutant: Mutant) -> dict[str, Any]:
        return {
            "id": mutant.id,
            "requirement": mutant.requirement,
            "violation": mutant.text,
            "status": mutant.status,
            "by": mutant.by,
            "also": sorted(mutant.also) if self.all_checks else None,
            "declared": list(mutant.declared),
            "reason": mutant.excluded or "; ".join(mutant.notes),
        }

    def _jobs(self) -> list[Job]:
        jobs: list[Job] = []
        for number, mutant in enumerate(self.mutants.values()):
            if mutant.excluded:
                continue
            jobs += [self._job(check, mutant.id) for check in self._checks_for(mutant)]
            if number % MUTANTS_PER_CLEAN_COPY == 0:
                jobs += self._clean_jobs(number)
        return jobs

    def _clean_jobs(self, number: int) -> list[Job]:
        """The checks that judge the next ten mutants, against an unbroken copy."""
        batch = list(self.mutants.values())[number : number + MUTANTS_PER_CLEAN_COPY]
        checks = {check.id: check for mutant in batch for check in self._own_checks(mutant)}
        return [self._job(check, _CLEAN, repeat=number + 1) for check in checks.values()]

    def _checks_for(self, mutant: Mutant) -> Sequence[Collected]:
        return self.checks if self.all_checks else self._own_checks(mutant)

    def _own_checks(self, mutant: Mutant) -> list[Collected]:
        return [check for check in self.checks if any(c.id == mutant.requirement for c in check.spec.claims)]

    def _job(self, check: Collected, variant: str, repeat: int = 1) -> Job:
        return Job(
            check=check.id,
            spec=check.spec,
            target=self.target,
            catalogue=self.catalogue,
            timings=self.timings,
            params=check.params,
            repeat=repeat,
            variant=variant,
            seed=self.seed,
        )

    def _watch(self, scheduler: Scheduler, job: Job, outcome: Outcome) -> None:
        alarm = outcome.verdict in _ALARMS
        if job.variant == _CLEAN:
            self.clean_runs += 1
            if alarm:
                self.false_alarms[job.check] = outcome.reason
            return
        mutant = self.mutants[job.variant]
        rows = {claim.id for claim in job.spec.claims}
        if alarm and mutant.requirement in rows:
            mutant.by.append(job.check)
            if not self.all_checks:
                scheduler.cancel_variant(job.variant)
        elif alarm:
            mutant.also |= rows
        elif outcome.verdict is not Verdict.PASS:
            mutant.undecided = mutant.undecided or outcome.verdict is Verdict.INCONCLUSIVE
            mutant.notes.append(f"{job.check}: {outcome.verdict} {outcome.reason.strip().splitlines()[-1:]}")


def _mutants(key: str, catalogue: Catalogue) -> list[Mutant]:
    registry = importlib.import_module(f"holdfast.reference.{key}.mutants.registry")
    known: Mapping[str, Any] = registry.all_mutants()
    excluded: Mapping[str, str] = registry.excluded()
    found = []
    for row in catalogue:
        for violation in row.violations:
            id_ = f"{row.id}/{violation.number}"
            if id_ in known or id_ in excluded:
                declared = known[id_].also if id_ in known else ()
                found.append(Mutant(id_, violation.text, excluded=excluded.get(id_), declared=declared))
    return found


def _mutant_modules(key: str) -> tuple[str, ...]:
    """Imported by the guardian once, so that no mutant has to on its own."""
    package = importlib.import_module(f"holdfast.reference.{key}.mutants")
    return tuple(f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__))


def _choose(everyone: list[Mutant], only: tuple[str, ...], sample: int | None, seed: int) -> list[Mutant]:
    chosen = [
        mutant
        for mutant in everyone
        if not only or any(mutant.id == one or mutant.id.startswith((f"{one}/", f"{one}-")) for one in only)
    ]
    if not chosen:
        raise CatalogueError(f"no mutant matches {', '.join(only)}")
    if sample is None or sample >= len(chosen):
        return chosen
    drawn = random.Random(seed).sample(chosen, sample)
    return [mutant for mutant in chosen if mutant in drawn]


def _collect(key: str) -> list[Collected]:
    package = Path(str(resources.files("holdfast")))
    collector = _Collector()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    code = pytest.main(
        [
            str(package / "conformance" / key),
            f"--rootdir={package}",
            f"--confcutdir={package}",
            "-c",
            os.devnull,
            "--collect-only",
            *("-p", "holdfast.plugin", "-p", "no:terminal", "-p", "no:cacheprovider"),
            f"--target={builtin_path(key)}",
        ],
        plugins=[collector],
    )
    if not collector.found:
        raise CatalogueError(f"the suite of {key} can't be collected (pytest says {code})")
    return collector.found


def _print_matrix(mutants: Sequence[Mutant], summary: Mapping[str, Any]) -> None:
    for mutant in mutants:
        by = ", ".join(check.rpartition("::")[2] for check in mutant.by)
        note = mutant.excluded or by or "; ".join(mutant.notes)
        print(f"  {mutant.status:<9} {mutant.id:<14} {mutant.text}")
        if note:
            print(f"            {'':<14} {note}")
    for check, reason in summary["false_alarms"].items():
        print(f"  false alarm on a clean copy: {check}: {reason}", file=sys.stderr)
    print(
        f"{summary['mutants']} mutants: {summary['killed']} killed, {summary['survived']} survived, "
        f"{summary['excluded']} excluded; {summary['covered_violations']} of {summary['violations']} violations "
        f"covered; {summary['clean_runs']} clean runs, {len(summary['false_alarms'])} false alarms"
    )
