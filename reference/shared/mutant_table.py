"""Mutants of a reference server: which there are, how they are told apart, and how one is put into a node's components.

Each spec keeps one `MutantTable` in its `mutants/table.py`, says there which forms its mutants have, and writes the
mutants themselves in modules beside it.
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from holdfast.reference.shared.drawn.draw import PREFIX, Draw, draw_of
from holdfast.reference.shared.drawn.equivalent import Equivalents
from holdfast.reference.shared.seams import Place, Seam, component_seams, lua_seams, registered_at, setting_seams
from holdfast.reference.shared.settings import BadSetting

P = TypeVar("P")
# `graded:<name>:<number>`: broken by as much as the number says, to find the least that a measurement sees.
GRADED = "graded:"
Subclass = TypeVar("Subclass", bound=type[Any])
Graded = Callable[[float], type[Any] | Mapping[str, str]]
SettingsChange = Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Mutant(Generic[P]):
    """One broken server. `seams` finds the rules that it overrides; `place` is the statement that registers it."""

    requirement: str
    number: int
    sentence: str
    install: Callable[[P], None]
    seams: Callable[[], tuple[Seam, ...]]
    also: tuple[str, ...] = ()
    place: Place = field(default_factory=registered_at)

    @property
    def name(self) -> str:
        return f"{self.requirement}/{self.number}"


class MutantTable(Generic[P]):
    """The mutants of one spec.

    `components` is the class whose fields are the components of a node, `settings` that of its settings; `support`
    names modules without mutants.
    """

    def __init__(
        self, package: ModuleType, components: type[P], settings: type[Any], support: frozenset[str], example: str
    ) -> None:
        self._package = package
        self._folder = Path(package.__path__[0]).parent
        self._components = components
        self._settings = settings
        self._support = support
        self._example = example
        self._known: dict[str, Mutant[P]] = {}
        self._excluded: dict[str, str] = {}
        self._graded: dict[str, Graded] = {}

    def register(self, mutant: Mutant[P]) -> None:
        if mutant.name in self._known:
            raise ValueError(f"There are two mutants named {mutant.name}; one violation has one mutant.")
        self._known[mutant.name] = mutant

    def violates(
        self,
        requirement: str,
        number: int,
        sentence: str,
        *,
        lua: Mapping[str, str] | None = None,
        also: tuple[str, ...] = (),
    ) -> Callable[[Subclass], Subclass]:
        """Registers a subclass of a component as a mutant; `lua` are the functions that it needs other bodies of."""

        def register(override: Subclass) -> Subclass:
            name, component = self._component_of(override)
            install = partial(_install, name, override, lua or {})
            seams = partial(_seams, override, component, lua or {}, self._folder)
            self.register(Mutant(requirement, number, sentence, install, seams, also))
            return override

        return register

    def violation(
        self,
        requirement: str,
        number: int,
        sentence: str,
        settings: SettingsChange | None = None,
        *,
        lua: Mapping[str, str] | None = None,
        also: tuple[str, ...] = (),
    ) -> None:
        """Registers a mutant that is a row: other constants, or other Lua bodies.

        `settings` gets the settings as they were given and returns the changed ones. `also` names the other
        requirements that the mutant breaks too, so that their failure is expected.
        """
        if settings is not None and lua is None:
            install, seams = partial(_resettle, settings), partial(setting_seams, self._settings, settings)
        elif lua is not None and settings is None:
            install, seams = partial(_rescript, lua), partial(lua_seams, lua, self._folder)
        else:
            raise ValueError(f"{requirement}/{number} must change either Lua functions or settings.")
        self.register(Mutant(requirement, number, sentence, install, seams, also))

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

    def apply(self, name: str, components: P) -> None:
        """Installs the mutant of that name; raises BadSetting with the names that are near if there is none."""
        try:
            install = self._installing(name)
        except LookupError as error:
            raise BadSetting(str(error)) from None
        install(components)

    def _installing(self, name: str) -> Callable[[P], None]:
        if name.startswith(GRADED):
            return self._graded_install(name)
        return self.draw().find(name).install if name.startswith(PREFIX) else self.find(name).install

    def graded(self, name: str) -> Callable[[Graded], Graded]:
        """Registers what makes a mutant of a number: the subclass of a component, or bodies of Lua functions."""

        def register(make: Graded) -> Graded:
            self._graded[name] = make
            return make

        return register

    def _graded_install(self, name: str) -> Callable[[P], None]:
        module = f"{self._package.__name__}.graded"
        if importlib.util.find_spec(module):
            importlib.import_module(module)
        kind, _, number = name.removeprefix(GRADED).partition(":")
        if kind not in self._graded or not number.replace(".", "", 1).isdigit():
            known = ", ".join(f"{GRADED}{each}:<number>" for each in self._graded) or "none"
            raise LookupError(f"No graded mutant {name!r}; there are {known}.")
        made = self._graded[kind](float(number))
        if isinstance(made, Mapping):
            return partial(_rescript, made)
        return partial(_install, self._component_of(made)[0], made, {})

    def draw(self) -> Draw:
        """Returns the draw of mutants that are listed nowhere; each is named `drawn:<seed>:<number>`."""
        return draw_of(self._package.__name__.rpartition(".")[0])

    def equivalents(self, draw: Draw) -> Equivalents:
        """Returns the drawn mutants that are argued to be no change at all."""
        return Equivalents(self._folder / "equivalent.toml", draw)

    def _component_of(self, override: type[Any]) -> tuple[str, type[Any]]:
        """The component that a class can replace: its name and its class."""
        for each in fields(self._components):  # type: ignore[arg-type]  # a dataclass
            if isinstance(each.default, type) and issubclass(override, each.default):
                return each.name, each.default
        raise TypeError(f"{override.__name__} is no subclass of a component; see components.py.")


def _install(name: str, override: type[Any], bodies: Mapping[str, str], components: object) -> None:
    setattr(components, name, override)
    if bodies:
        _rescript(bodies, components)


def _seams(override: type[Any], component: type[Any], bodies: Mapping[str, str], folder: Path) -> tuple[Seam, ...]:
    return (*component_seams(override, component, folder), *lua_seams(bodies, folder))


def _resettle(change: SettingsChange, components: Any) -> None:
    components.settings = lambda given: replace(given, **change(given))


def _rescript(bodies: Mapping[str, str], components: Any) -> None:
    components.lua = {**components.lua, **bodies}
