"""`holdfast mutants`: the deliberately broken servers of a spec, and the checks that have to catch them."""

import importlib
import json
import os
import pkgutil
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import rooms
from holdfast.check.verifies import CheckSpec, spec_of
from holdfast.cli.drawn import asks_for_drawn, candidates
from holdfast.cli.mistakes import refuse_folder
from holdfast.cli.screen import screen
from holdfast.cli.several import run_several
from holdfast.plugin import Handover, check_id, params_of
from holdfast.reports.files import write_all
from holdfast.reports.result import Results
from holdfast.run.drawn import DrawnMatrix
from holdfast.run.events import MutantPlan
from holdfast.run.mutation import CollectedCheck, KillMatrix
from holdfast.run.options import KilledBy, RunOptions
from holdfast.run.plain_pytest import undisturbed
from holdfast.run.selection import names_row
from holdfast.run.stream import Reporter, Stream
from holdfast.run.tokens import Tokens
from holdfast.spec.catalogue import Catalogue, CatalogueError, builtin, builtin_keys


def kill_matrix(keys: list[str], options: RunOptions, *, as_json: bool) -> int:
    """Judge the mutants of these specs, of all there are if none is named."""
    chosen = keys or builtin_keys()
    if len(chosen) > 1:
        return run_several("mutants", chosen, options, as_json=as_json)
    with screen(wanted=not as_json) as terminal:
        results = judge_mutants(chosen[0], options, terminal)
    if as_json:
        print(json.dumps(results.to_json(), ensure_ascii=False))
    else:
        print(f"report {(options.results or Path()) / 'report.html'}")
    return results.exit


def judge_mutants(
    key: str, options: RunOptions, reporter: Reporter | None = None, tokens: Tokens | None = None
) -> Results:
    """Judge the mutants of one spec in this process, and write the reports, also of a run that breaks off."""
    catalogue, target = builtin(key), options.read_target(key)
    everyone = known_mutants(key, catalogue)
    drawn = asks_for_drawn(options)
    chosen = [] if drawn else _choose(everyone, options)
    found, wanted = candidates(key, options) if drawn else (iter(()), 0)
    refuse_folder(options.results)
    checks = _collect(key, replace(options, by=options.by if drawn else KilledBy.SUITE))
    folder = options.results or Path()
    stream = Stream(folder, [reporter] if reporter else [])
    matrix = (
        DrawnMatrix(options, target, catalogue, found, wanted, checks, stream, tokens)
        if drawn
        else KillMatrix(options, target, catalogue, chosen, checks, stream, tokens)
    )
    try:
        matrix.run(len(everyone), _mutant_modules(key))
    finally:
        results = write_all(folder)
    return results


def known_mutants(key: str, catalogue: Catalogue) -> list[MutantPlan]:
    """Every violation of the catalogue that has a mutant, or a reason for none."""
    table = importlib.import_module(f"holdfast.reference.{key}.mutants.table")
    known: Mapping[str, Any] = table.all_mutants()
    excluded: Mapping[str, str] = table.excluded()
    return [
        MutantPlan(id_, row.id, violation.text, list(known[id_].also) if id_ in known else [], excluded.get(id_))
        for row in catalogue
        for violation in row.violations
        if (id_ := f"{row.id}/{violation.number}") in known or id_ in excluded
    ]


def _mutant_modules(key: str) -> tuple[str, ...]:
    """Imported by the guardian once, so that no mutant has to on its own."""
    package = importlib.import_module(f"holdfast.reference.{key}.mutants")
    return tuple(f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__))


def _choose(everyone: list[MutantPlan], options: RunOptions) -> list[MutantPlan]:
    names = options.selection.names
    chosen = [mutant for mutant in everyone if not options.only or any(_named(name, mutant.id) for name in names)]
    if not chosen:
        raise CatalogueError(f"no mutant matches {', '.join(options.only)}; see holdfast explain ID")
    if options.sample is None or options.sample >= len(chosen):
        return chosen
    drawn = {mutant.id for mutant in random.Random(options.seed).sample(chosen, options.sample)}
    return [mutant for mutant in chosen if mutant.id in drawn]


def _named(name: str, mutant: str) -> bool:
    """Whether a name means this mutant: the mutant, its row or group, or a pattern of these, in any case."""
    row, slash, number = name.partition("/")
    mine, _, its_number = mutant.partition("/")
    return names_row(row, mine) and (not slash or number in ("*", its_number))


class _Collector(Handover):
    """Takes the items that pytest collected instead of running them, as far as they may kill."""

    def __init__(self, options: RunOptions, by: KilledBy) -> None:
        super().__init__(options)
        self._by = by
        self.found: list[CollectedCheck] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            spec = spec_of(getattr(item, "function", None))
            if spec and self._may_kill(spec):
                self.found.append(CollectedCheck(check_id(item), spec, params_of(item)))

    def _may_kill(self, spec: CheckSpec) -> bool:
        """Of a listed mutant no walk is asked: it claims half of the catalogue, and a check finds it sooner."""
        return self._by is KilledBy.ALL or spec.walks == (self._by is KilledBy.WALKS)


def _collect(key: str, options: RunOptions) -> list[CollectedCheck]:
    suite = rooms.folder("conformance")
    asked = RunOptions(target=key, seed=options.seed, walks=options.by is not KilledBy.SUITE)
    collector = _Collector(asked, options.by)
    words = [
        str(suite / key),
        f"--rootdir={suite.parent}",
        f"--confcutdir={suite}",
        *("-c", os.devnull, "--collect-only"),
        *("-p", "holdfast.plugin", "-p", "no:terminal", "-p", "no:cacheprovider"),
    ]
    with undisturbed():
        code = pytest.main(words, plugins=[collector])
    if not collector.found:
        what = "walks" if options.by is KilledBy.WALKS else "suite"
        raise CatalogueError(f"the {what} of {key} can't be collected (pytest says {code})")
    return collector.found
