"""What the listed mutants tell about drawn ones: which of these are listed already, and which rows are near them."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

from holdfast.reference.shared.drawn.draw import DrawnMutant
from holdfast.reference.shared.drawn.lua_edits import words_of
from holdfast.reference.shared.drawn.python_edits import FunctionNode, functions_of
from holdfast.reference.shared.scripts import functions, with_body

Bodies = frozenset[tuple[str, str]]


class Listed:
    """The listed mutants of a spec, looked at once."""

    def __init__(self, mutants: Mapping[str, Any], folder: Path) -> None:
        self._bodies: Bodies = frozenset(body for each in mutants.values() for body in _bodies(each, folder))
        self._near: list[tuple[Path, str, str]] = [
            (seam.place.file.resolve(), seam.name.rpartition(".")[2], each.requirement)
            for each in mutants.values()
            for seam in each.seams()
        ]

    def has(self, mutant: DrawnMutant) -> bool:
        """Whether a listed mutant puts the same body in place of the same function."""
        label = mutant.function.label
        if mutant.function.is_lua:
            return (label, " ".join(words_of(mutant.after))) in self._bodies
        node = functions_of(ast.parse(mutant.after))[label]
        return (node.name, _body(node)) in self._bodies

    def rows_near(self, mutant: DrawnMutant) -> list[frozenset[str]]:
        """The rows with listed mutants of the same function, then of the same file, or folder of Lua functions."""
        file, name = mutant.function.file, mutant.function.label.rpartition(".")[2]
        same = frozenset(row for path, label, row in self._near if (path, label) == (file, name))
        beside = {row for path, _, row in self._near if path == file}
        if mutant.function.is_lua:
            beside |= {row for path, _, row in self._near if path.parent == file.parent}
        return [same, frozenset(beside)]


def _bodies(mutant: Any, folder: Path) -> Iterable[tuple[str, str]]:
    """The functions that a mutant puts in place of others, found by installing it into nothing."""
    into = SimpleNamespace(lua={})
    mutant.install(into)
    for name, body in into.lua.items():
        yield name, " ".join(words_of(with_body(functions(folder / "lua")[name], body)))
    for override in vars(into).values():
        if isinstance(override, type):
            yield from _methods(override)


def _methods(override: type[Any]) -> Iterable[tuple[str, str]]:
    for name, value in vars(override).items():
        if isinstance(value, FunctionType):
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
            if isinstance(node, FunctionNode):
                yield name, _body(node)


def _body(node: FunctionNode) -> str:
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return "; ".join(ast.dump(each) for each in body)
