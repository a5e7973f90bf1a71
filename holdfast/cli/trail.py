"""The trail of a requirement through the project: its checks, its scenarios, its mutants, and where each is written.

Everything is found at run time, from what the suite and the reference register. Only the test modules whose text
contains the id are imported, so that the answer comes within a second or so.
"""

import ast
import importlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast import rooms
from holdfast.check.verifies import CheckSpec
from holdfast.reference.shared.mutant_table import Mutant
from holdfast.reference.shared.seams import Place
from holdfast.run.suite import checks_of


@dataclass(frozen=True)
class Trail:
    """What one spec has for the rows whose ids begin with `naming`; modules are imported when they are asked for."""

    key: str
    naming: str

    @cached_property
    def checks(self) -> Mapping[str, CheckSpec]:
        return checks_of(self.key, naming=self.naming)

    @cached_property
    def scenarios(self) -> Mapping[str, CheckSpec]:
        return checks_of(self.key, scenarios=True, naming=self.naming)

    @cached_property
    def mutants(self) -> Mapping[str, Mutant[Any]]:
        return {name: each for name, each in self._table.all_mutants().items() if name.startswith(self.naming)}

    @cached_property
    def excluded(self) -> Mapping[str, str]:
        """Why a violation has no mutant, by name."""
        return {name: why for name, why in self._table.excluded().items() if name.startswith(self.naming)}

    @property
    def _table(self) -> ModuleType:
        return importlib.import_module(f"holdfast.reference.{self.key}.mutants.table")

    def checks_for(self, id_: str, part: int | None = None) -> list[CheckSpec]:
        """The checks of a row, or of one part of it."""
        return [spec for spec in self.checks.values() if _claims(spec, id_, part)]

    def scenarios_for(self, id_: str) -> list[CheckSpec]:
        return [spec for spec in self.scenarios.values() if _claims(spec, id_, None)]

    def mutants_for(self, id_: str) -> list[Mutant[Any]]:
        return [mutant for mutant in self.mutants.values() if mutant.requirement == id_]


def _claims(spec: CheckSpec, id_: str, part: int | None) -> bool:
    return any(claim.id == id_ and part in (None, claim.part) for claim in spec.claims)


def place_of(spec: CheckSpec) -> Place:
    """The first mark of a check: the marks say what it verifies."""
    code = spec.function.__code__
    return Place(Path(code.co_filename), code.co_firstlineno)


def shown(place: Place) -> str:
    """`conformance/admission/test_rate_window.py:41`: below the checkout, or below the installed package."""
    file = place.file.resolve()
    for room in rooms.ROOMS:
        folder = rooms.folder(room).resolve()
        if file.is_relative_to(folder):
            return f"{file.relative_to(folder.parent).as_posix()}:{place.line}"
    return f"{file}:{place.line}"


def excerpt(place: Place, most: int) -> list[str]:
    """The source at a place, without its indentation: the first `most` lines of that statement or Lua function."""
    lines = place.file.read_text(encoding="utf-8").splitlines()[place.line - 1 : last_line(place)]
    text = textwrap.dedent("\n".join(lines)).splitlines()
    return text if len(text) <= most else [*text[:most], "…"]


def last_line(place: Place) -> int:
    """Where the statement at a place ends; a Lua file has one function, so that one ends with the file."""
    source = place.file.read_text(encoding="utf-8")
    if place.file.suffix != ".py":
        return len(source.splitlines())
    statements = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt))
    return max((node.end_lineno or 0 for node in statements if _begins(node) == place.line), default=place.line)


def _begins(statement: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])
