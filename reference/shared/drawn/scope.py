"""What the mutants of a spec are drawn from: `<key>/drawn.toml`, where everything is either in or left out by reason.

    python = ["attempts", "shared/redislink"]      modules of the spec, or of what the references share
    lua = true                                     whether the folders of `lua/` are in too
    quiet = ["log"]                                calls that only write text for people
    [words]                                        enumerations of the spec: words that can stand in for one another
    [left_out]                                     module, function or Lua folder = why no mutant is drawn from it

A module or folder that is in neither list is an error, so that a new one is not forgotten. A function is left out as
`module.Class.method`, a Lua function as `lua/folder/name`.
"""

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast.reference.shared.drawn import lua_edits, python_edits
from holdfast.reference.shared.drawn.edit import Edit
from holdfast.reference.shared.drawn.python_edits import Hints

_KEYS = frozenset({"python", "lua", "quiet", "words", "left_out"})
SHARED = "shared/"


class ScopeError(ValueError):
    """Raised for a `drawn.toml` or `equivalent.toml` that does not fit the reference; its text says what to mend."""


@dataclass(frozen=True)
class Function:
    """A function that mutants can be drawn from; `name` is unique in the spec, `module` names its stratum."""

    name: str
    module: str
    file: Path
    source: str
    edits: tuple[Edit, ...]

    @property
    def is_lua(self) -> bool:
        return self.file.suffix == ".lua"

    @property
    def label(self) -> str:
        """The name by which the spec's other files call it: the qualified name, or that of the Lua function."""
        return self.file.stem if self.is_lua else self.name.rpartition("/")[2].partition(".")[2]


class Scope:
    """The strata of one spec; `folder` is the folder of its reference, `shared` that of what all references share."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        self._shared = shared
        self.file = folder / "drawn.toml"
        self._read: Mapping[str, Any] = _toml(self.file)
        if unknown := set(self._read) - _KEYS:
            raise ScopeError(f"{self.file}: unknown key {min(unknown)!r}; there are {', '.join(sorted(_KEYS))}.")
        self._strata: dict[str, tuple[Function, ...]] = {}

    @cached_property
    def left_out(self) -> Mapping[str, str]:
        return MappingProxyType(self._read.get("left_out", {}))

    @cached_property
    def hints(self) -> Hints:
        return Hints(frozenset(self._read.get("quiet", ())), tuple(self._read.get("words", {}).values()))

    @cached_property
    def strata(self) -> tuple[str, ...]:
        """The names of all modules and Lua folders in scope, sorted."""
        folders = self._lua_folders() if self._read.get("lua") else []
        return tuple(sorted([*self._read.get("python", ()), *(each for each in folders if each not in self.left_out)]))

    def functions(self, stratum: str) -> tuple[Function, ...]:
        """Returns the functions of a stratum that have something to change."""
        if stratum not in self._strata:
            found = self._lua(stratum) if stratum.startswith("lua/") else self._python(stratum)
            self._strata[stratum] = tuple(each for each in found if each.edits and each.name not in self.left_out)
        return self._strata[stratum]

    def find(self, name: str) -> Function | None:
        """Returns the function of this full name, such as `attempts.Attempts.settle` or `lua/queue/promote`."""
        stratum = name.rpartition("/")[0] if name.startswith("lua/") else _module_of(name)
        if stratum not in self.strata:
            return None
        return next((each for each in self.functions(stratum) if each.name == name), None)

    def path(self, module: str) -> Path:
        base = self._shared if module.startswith(SHARED) else self.folder
        return base / f"{module.removeprefix(SHARED)}.py"

    def check(self) -> None:
        """Raises ScopeError unless everything that is there is in or left out, and nothing else is named."""
        there = {*self._modules(self.folder), *(SHARED + each for each in self._modules(self._shared))}
        there |= set(self._lua_folders())
        if missing := there - set(self.strata) - set(self.left_out):
            raise ScopeError(f"{self.file}: {min(missing)} is neither in nor left out; list it, with a reason.")
        for name in (*self.strata, *self.left_out):
            if name not in there and not self._knows_function(name):
                raise ScopeError(f"{self.file}: there is no module, folder or function {name}; remove it.")

    def _knows_function(self, name: str) -> bool:
        if name.startswith("lua/"):
            return (self.folder / f"{name}.lua").is_file()
        path = self.path(_module_of(name))
        label = name.rpartition("/")[2].partition(".")[2]
        return path.is_file() and label in python_edits.functions_of(ast.parse(path.read_text("utf-8")))

    def _modules(self, folder: Path) -> list[str]:
        return [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]

    def _lua_folders(self) -> list[str]:
        lua = self.folder / "lua"
        return [f"lua/{path.name}" for path in lua.iterdir() if path.is_dir()] if lua.is_dir() else []

    def _python(self, module: str) -> list[Function]:
        path = self.path(module)
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        return [
            Function(
                f"{module}.{name}", module, path, source, tuple(python_edits.edits_of(source, tree, node, self.hints))
            )
            for name, node in python_edits.functions_of(tree).items()
        ]

    def _lua(self, stratum: str) -> list[Function]:
        found = []
        for path in sorted((self.folder / stratum).glob("*.lua")):
            source = path.read_text("utf-8")
            edits = tuple(lua_edits.edits_of(source, self.hints.words))
            found.append(Function(f"{stratum}/{path.stem}", stratum, path, source, edits))
        return found


def _module_of(name: str) -> str:
    """`shared/redislink` of `shared/redislink.RedisLink.call`."""
    return name.partition(".")[0]


def _toml(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ScopeError(f"{file} is missing; it says what mutants are drawn from.") from None
    except tomllib.TOMLDecodeError as error:
        raise ScopeError(f"{file}: {error}") from None
