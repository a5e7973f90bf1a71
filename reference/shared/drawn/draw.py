"""The draw: which mutant `drawn:<seed>:<number>` is, and how it is put into a node.

The order of everything comes from the seed, and only from it. Numbers go round the strata, so that ten numbers are ten
modules; inside a stratum each turn takes the next function, and inside a function the next operator. A number whose
stratum has nothing left is no mutant. What can't run, or is the same code as before, is passed over here already.
"""

import importlib
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from holdfast.reference.shared.drawn.edit import Edit, diff
from holdfast.reference.shared.drawn.lua_edits import body_of, words_of
from holdfast.reference.shared.drawn.scope import Function, Scope
from holdfast.reference.shared.seams import function_of

T = TypeVar("T")
PREFIX = "drawn:"
_NAME = re.compile(r"drawn:(\d+):([1-9]\d*)")
_REFERENCE = Path(__file__).resolve().parents[2]


class NoSuchMutant(LookupError):  # noqa: N818  # named for what is wrong
    """Raised for a name that is no drawn mutant; its text says what to write."""


@dataclass(frozen=True)
class DrawnMutant:
    """One change of one function. `module` is its stratum, `package` where its Python module is imported from."""

    name: str
    function: Function
    edit: Edit
    package: str

    @property
    def module(self) -> str:
        return self.function.module

    @property
    def kind(self) -> str:
        return self.edit.kind

    @cached_property
    def after(self) -> str:
        return self.edit.applied(self.function.source)

    @property
    def place(self) -> str:
        """The file, below the folder of all references, and the line."""
        return f"{self._file}:{self.edit.line(self.function.source)}"

    @property
    def sentence(self) -> str:
        return f"{self.function.label}: {self.edit.says}"

    @cached_property
    def diff(self) -> str:
        return diff(self.function.source, self.after, self._file)

    @property
    def _file(self) -> str:
        file = self.function.file
        inside = file.relative_to(_REFERENCE) if file.is_relative_to(_REFERENCE) else Path(file.name)
        return f"reference/{inside.as_posix()}"

    def runs(self) -> bool:
        """Whether the change gives other code that can take the place of the original."""
        if self.diff.count("\n@@ ") != 1:
            return False
        return self._runs_in_lua() if self.function.is_lua else self._runs_in_python()

    def _runs_in_lua(self) -> bool:
        return words_of(self.after) != words_of(self.function.source)

    def _runs_in_python(self) -> bool:
        try:
            before, after = self._inside(_compiled(self.function.source)), self._code(self.after)
        except SyntaxError:
            return False
        same_frame = (before.co_freevars, before.co_flags) == (after.co_freevars, after.co_flags)
        return same_frame and instructions(before) != instructions(after)

    def install(self, components: Any) -> None:
        """Puts the changed function in place of the original, for this process."""
        if self.function.is_lua:
            start, end = body_of(self.after)
            components.lua = {**components.lua, self.function.label: self.after[start:end].rstrip("\n")}
            return
        module = importlib.import_module(f"{self.package}.{self.function.module.rpartition('/')[2]}")
        original = function_of(_member(module, self.function.label))
        if original is None:
            raise TypeError(f"{self.function.name} is no function of its module.")
        # In place, so that those who imported the function or bound it before have the changed one too.
        original.__code__ = self._code(self.after)

    def _code(self, source: str) -> CodeType:
        return self._inside(compile(source, str(self.function.file), "exec", dont_inherit=True))

    def _inside(self, module: CodeType) -> CodeType:
        return next(code for code in _inside(module) if code.co_qualname == self.function.label)


@cache
def _compiled(source: str) -> CodeType:
    """A module as it is, compiled once for all the mutants that are compared with it."""
    return compile(source, "<original>", "exec", dont_inherit=True)


def _member(module: Any, label: str) -> Any:
    """The function as its class or module keeps it: what is wrapped as property or classmethod stays wrapped."""
    owner, _, name = label.rpartition(".")
    return vars(getattr(module, owner) if owner else module)[name]


def _inside(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


def instructions(code: CodeType) -> tuple[Any, ...]:
    """Returns what a function does, without the lines on which it is written."""
    constants = [
        instructions(each) if isinstance(each, CodeType) else (type(each).__name__, each) for each in code.co_consts
    ]
    return code.co_code, tuple(map(repr, constants)), code.co_names, code.co_varnames, code.co_exceptiontable


class Draw:
    """The mutants of one spec, by seed and number. `packages` are those of the spec and of what references share."""

    def __init__(self, scope: Scope, package: str, shared: str) -> None:
        self.scope = scope
        self._package, self._shared = package, shared
        self._orders: dict[tuple[int, str], tuple[list[DrawnMutant], Iterator[DrawnMutant]]] = {}

    def find(self, name: str) -> DrawnMutant:
        """Returns the mutant that is named `drawn:<seed>:<number>`."""
        said = _NAME.fullmatch(name)
        if said is None:
            raise NoSuchMutant(f"{name!r} is no drawn mutant; write it as drawn:<seed>:<number>, such as drawn:1:7.")
        mutant = self.mutant(int(said[1]), int(said[2]))
        if mutant is None:
            raise NoSuchMutant(f"{name}: its module has no mutants left; take a smaller number.")
        return mutant

    def mutant(self, seed: int, number: int) -> DrawnMutant | None:
        strata = shuffled(self.scope.strata, str(seed))
        turn, place = divmod(number - 1, len(strata))
        found, more = self._orders.setdefault((seed, strata[place]), ([], self._of_stratum(seed, strata[place])))
        found.extend(islice(more, max(0, turn + 1 - len(found))))
        return replace(found[turn], name=f"{PREFIX}{seed}:{number}") if turn < len(found) else None

    def mutants(self, seed: int) -> Iterator[DrawnMutant]:
        """Yields all mutants of a seed in the order of their numbers, until no stratum has any left."""
        number, empty = 1, 0
        while empty < len(self.scope.strata):
            mutant = self.mutant(seed, number)
            empty = 0 if mutant else empty + 1
            if mutant:
                yield mutant
            number += 1

    def of_function(self, function: Function) -> Iterator[DrawnMutant]:
        """Yields every mutant of a function, without a number of its own."""
        for edit in function.edits:
            mutant = self._made(function, edit)
            if mutant.runs():
                yield mutant

    def _of_stratum(self, seed: int, stratum: str) -> Iterator[DrawnMutant]:
        functions = shuffled(self.scope.functions(stratum), f"{seed} {stratum}")
        orders = [[(each, edit) for edit in _in_turn_by_kind(each, seed)] for each in functions]
        for function, edit in in_turn(orders):
            mutant = self._made(function, edit)
            if mutant.runs():
                yield mutant

    def _made(self, function: Function, edit: Edit) -> DrawnMutant:
        package = self._shared if function.module.startswith("shared/") else self._package
        return DrawnMutant("", function, edit, package)


def _in_turn_by_kind(function: Function, seed: int) -> Iterator[Edit]:
    by_kind: dict[str, list[Edit]] = {}
    for edit in function.edits:
        by_kind.setdefault(edit.kind, []).append(edit)
    kinds = shuffled(sorted(by_kind), f"{seed} {function.name}")
    return in_turn([shuffled(by_kind[kind], f"{seed} {function.name} {kind}") for kind in kinds])


def shuffled(things: Iterable[T], key: str) -> list[T]:
    """Returns the things in the order that the key gives; the same in every process."""
    order = list(things)
    random.Random(key).shuffle(order)
    return order


def in_turn(lists: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yields the first of each list, then the second of each, and so on."""
    waiting = [iter(each) for each in lists]
    while waiting:
        rest = []
        for each in waiting:
            for thing in islice(each, 1):
                yield thing
                rest.append(each)
        waiting = rest


def draw_of(package: str) -> Draw:
    """Returns the draw of the reference in this package, such as `holdfast.reference.admission`."""
    folder = Path(importlib.import_module(package).__path__[0]).resolve()
    shared = f"{package.rpartition('.')[0]}.shared"
    return Draw(Scope(folder, folder.parent / "shared"), package, shared)
