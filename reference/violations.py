"""Mutants of a reference server: which there are, how they are told apart, and how one is put into a node's parts.

Each spec keeps one `Violations` in its `mutants/registry.py`, says there which forms its mutants have, and writes the
mutants themselves in modules beside it.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any, Generic, TypeVar

P = TypeVar("P")
Seam = TypeVar("Seam", bound=type[Any])


@dataclass(frozen=True)
class Mutant(Generic[P]):
    requirement: str
    number: int
    sentence: str
    install: Callable[[P], None]
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.requirement}/{self.number}"


class Violations(Generic[P]):
    """Of one spec: `parts` is the table of a node's parts, `support` names the modules that hold no mutants."""

    def __init__(self, package: ModuleType, parts: type[P], support: frozenset[str], example: str) -> None:
        self._package = package
        self._parts = parts
        self._support = support
        self._example = example
        self._known: dict[str, Mutant[P]] = {}
        self._excluded: dict[str, str] = {}

    def register(self, mutant: Mutant[P]) -> None:
        if mutant.name in self._known:
            raise ValueError(f"There are two mutants named {mutant.name}; one violation has one mutant.")
        self._known[mutant.name] = mutant

    def violates(
        self, requirement: str, number: int, sentence: str, *, also: tuple[str, ...] = ()
    ) -> Callable[[Seam], Seam]:
        """Registers a subclass of a part as a mutant."""

        def register(part: Seam) -> Seam:
            name = self._part_of(part)
            self.register(Mutant(requirement, number, sentence, lambda parts: setattr(parts, name, part), also))
            return part

        return register

    def exclude(self, requirement: str, number: int, reason: str) -> None:
        """Registers why a violation has no mutant; the kill matrix shows the reason."""
        self._excluded[f"{requirement}/{number}"] = reason

    def excluded(self) -> Mapping[str, str]:
        self.all_mutants()
        return dict(self._excluded)

    def all_mutants(self) -> Mapping[str, Mutant[P]]:
        for module in pkgutil.iter_modules(self._package.__path__):
            if module.name not in self._support:
                importlib.import_module(f"{self._package.__name__}.{module.name}")
        return dict(sorted(self._known.items()))

    def find(self, name: str) -> Mutant[P]:
        known = self.all_mutants()
        if name not in known:
            near = [each for each in known if each.startswith(name.partition("/")[0])]
            hint = f"known for this requirement: {', '.join(near)}" if near else "there is none for this requirement"
            raise LookupError(f"No violation {name!r}: {hint}. Write it as ID/n, for example {self._example}.")
        return known[name]

    def _part_of(self, part: type[Any]) -> str:
        """The name of the part that a class can stand for."""
        for each in fields(self._parts):  # type: ignore[arg-type]  # a dataclass
            if isinstance(each.default, type) and issubclass(part, each.default):
                return each.name
        raise TypeError(f"{part.__name__} is no subclass of a part; see parts.py.")
