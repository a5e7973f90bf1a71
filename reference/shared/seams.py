"""Which rules a mutant overrides, and where each of them is written.

A mutant is only understood beside the rule that it breaks. These functions find that rule from the override itself: the
method of a component, the Lua function or the field of the settings. They read source files, so they are called when
somebody asks, never while a node starts.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any


@dataclass(frozen=True)
class Place:
    file: Path
    line: int


@dataclass(frozen=True)
class Seam:
    """One overridden rule: `place` is where the rule is written, `override` where a class replaces it."""

    kind: str
    name: str
    place: Place
    change: str = ""
    override: Place | None = None


def registered_at() -> Place:
    """The top-level statement of a module that is being executed.

    Called while a mutant is registered, this is the line of `@violates(…)` or `violation(…)`, or of the call of a
    helper function that makes several mutants of one form.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None:
        raise RuntimeError("A mutant is registered by a module, while that is imported.")
    return Place(Path(frame.f_code.co_filename), frame.f_lineno)


def lua_seams(names: Iterable[str], folder: Path, override: Place | None = None) -> tuple[Seam, ...]:
    """The Lua functions of these names, found by their files below `folder`."""
    files = {path.stem: path for path in folder.rglob("*.lua")}
    return tuple(Seam("Lua function", name, _place_in(files[name], name), override=override) for name in names)


def setting_seams(settings: type[Any], change: Callable[[Any], Mapping[str, Any]]) -> tuple[Seam, ...]:
    """The fields that `change` returns for default settings, also where it returns the default itself."""
    default = settings()
    seams = []
    for name, value in change(default).items():
        before = getattr(default, name)
        words = f"always {value!r}" if value == before else f"{before!r} becomes {value!r}"
        seams.append(Seam("setting", name, _place_of(settings, name), words))
    return tuple(seams)


def component_seams(override: type[Any], component: type[Any], folder: Path) -> tuple[Seam, ...]:
    """What a subclass of a component replaces: its own definitions, then those of helper classes in between.

    A definition that no base class knows is no seam. A class attribute that names Lua functions means those
    functions.
    """
    found: dict[str, Seam] = {}
    for cls in override.__mro__:
        if cls in component.__mro__:
            break
        for name in _definitions(cls):
            if cls is override or _is_rule(override, component, name, folder):
                for seam in _definition_seams(override, component, name, folder):
                    found.setdefault(seam.name, seam)
    return tuple(found.values())


def _definitions(cls: type[Any]) -> list[str]:
    return [name for name, value in vars(cls).items() if isinstance(value, FunctionType) or not name.startswith("__")]


def _is_rule(override: type[Any], component: type[Any], name: str, folder: Path) -> bool:
    """Whether a definition of a helper class replaces a rule; its constructor and its own attributes do not."""
    replaces = hasattr(component, name) and name != "__init__"
    return replaces or _names_lua(getattr(override, name), folder)


def _definition_seams(override: type[Any], component: type[Any], name: str, folder: Path) -> tuple[Seam, ...]:
    value = getattr(override, name)
    replaced_at = _place_of(next(cls for cls in override.__mro__ if name in vars(cls)), name)
    if _names_lua(value, folder):
        return lua_seams(value, folder, replaced_at)
    # The component's own definition comes first: that of a helper class is part of the mutant, not of the rule.
    for cls in (*component.__mro__[:-1], *override.__mro__[1:-1]):
        if name in vars(cls):
            owner = component if cls in component.__mro__ else cls
            kind = "method" if function_of(vars(cls)[name]) else "attribute"
            return (Seam(kind, f"{owner.__name__}.{name}", _place_of(cls, name), override=replaced_at),)
    return ()


def _names_lua(value: Any, folder: Path) -> bool:
    """Whether a class attribute is a table of Lua bodies by name, or a tuple of names of Lua functions."""
    bodies = isinstance(value, Mapping) and all(isinstance(body, str) for body in value.values())
    if not value or not (bodies or isinstance(value, tuple)):
        return False
    return set(value) <= {path.stem for path in folder.rglob("*.lua")}


def _place_of(cls: type[Any], name: str) -> Place:
    if function := function_of(vars(cls).get(name)):
        return Place(Path(function.__code__.co_filename), function.__code__.co_firstlineno)
    lines, first = inspect.getsourcelines(cls)
    for number, line in enumerate(lines, first):
        if re.match(rf"\s+{name}\s*[:=]", line):
            return Place(Path(inspect.getfile(cls)), number)
    return Place(Path(inspect.getfile(cls)), first)


def function_of(value: Any) -> FunctionType | None:
    """Returns the plain function inside a property, a class or static method, or a decorated function."""
    match value:
        case property():
            value = value.fget
        case staticmethod() | classmethod():
            value = value.__func__
        case cached_property():
            value = value.func
    value = inspect.unwrap(value) if callable(value) else value
    return value if isinstance(value, FunctionType) else None


def _place_in(file: Path, function: str) -> Place:
    """Where a Lua file declares a function: comments come before it."""
    lines = file.read_text(encoding="utf-8").splitlines()
    declared = (number for number, line in enumerate(lines, 1) if line.startswith(f"local function {function}("))
    return Place(file, next(declared, 1))
