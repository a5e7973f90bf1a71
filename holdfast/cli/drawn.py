"""`holdfast mutants --drawn N`: mutants that the seed chooses, as candidates for the kill matrix."""

import importlib
from collections.abc import Iterator
from typing import Any

from holdfast.reference.shared.drawn.draw import PREFIX, DrawnMutant, NoSuchMutant
from holdfast.reference.shared.drawn.listed import Listed
from holdfast.reference.shared.drawn.scope import ScopeError
from holdfast.run.drawn import Candidate
from holdfast.run.events import DrawnChange, MutantPlan
from holdfast.run.options import RunOptions
from holdfast.spec.catalogue import CatalogueError


def asks_for_drawn(options: RunOptions) -> bool:
    """Whether the user wants drawn mutants: a number of them, or some by name. Both kinds in one run are refused."""
    named = [one.startswith(PREFIX) for one in options.selection.names]
    wanted = bool(options.drawn) or any(named)
    if wanted and (options.sample is not None or not all(named)):
        raise CatalogueError("--drawn takes neither --sample nor rows; name drawn mutants with --only drawn:<seed>:<n>")
    return wanted


def candidates(key: str, options: RunOptions) -> tuple[Iterator[Candidate], int]:
    """The mutants in the order of the draw, and how many of them are wanted."""
    table = importlib.import_module(f"holdfast.reference.{key}.mutants.table")
    try:
        draw = table.draw()
        draw.scope.check()
        equivalents = table.equivalents(draw)
        named = [draw.find(name) for name in options.selection.names]
    except (ScopeError, NoSuchMutant) as error:
        raise CatalogueError(str(error)) from error
    listed = Listed(table.all_mutants(), draw.scope.folder)
    drawn = iter(named) if named else draw.mutants(options.seed)
    found = (_candidate(each, listed, equivalents) for each in drawn if named or not listed.has(each))
    return found, len(named) or options.drawn


def _candidate(mutant: DrawnMutant, listed: Listed, equivalents: Any) -> Candidate:
    argument = equivalents.argument_for(mutant)
    change = DrawnChange(mutant.module, mutant.function.label, mutant.kind, mutant.place, mutant.diff)
    plan = MutantPlan(
        id=mutant.name,
        violation=f"{mutant.sentence} ({mutant.place})",
        excluded=f"equivalent: {argument}" if argument else None,
        drawn=change,
    )
    return Candidate(plan, listed.rows_near(mutant))
