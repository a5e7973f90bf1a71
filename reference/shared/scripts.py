"""Assembles the Lua scripts of a node from named functions, one file each.

What a script is. A spec's `Scripts` names its folder of Lua files and its main functions; each main function gives one
script of the same name. The text of a script is, in this order: the table `limits` (what the node knows at start),
every function that the main function reaches, and a tail. The tail decodes the one argument, the JSON object `facts`,
reads the Redis clock once into `facts.now` with the function `now`, calls the main function and returns its answer as
JSON with the time of the run in `at`. All times of one run are therefore equal, and they are Redis times.

Where the functions are. `<name>.lua`, in the folder or one below it, holds the one function `<name>`. Folders are for
readers: a script knows functions by name alone, so a name may occur only once in all folders, and `read_files` refuses
a second file of the same name.

How callees are found. A word in a function's source that is the name of a function counts as a call, unless it
follows a dot (a field) or is inside a comment or a 'single-quoted' string. A parameter or local variable with the
name of a function only adds a function that is not called. Lua knows a local function only after its definition, so
callees are written before their callers, and functions that call each other in a circle are refused.

What a mutant may override. `overrides` maps the name of a function to another body; the signature stays, so callers
need not change. Callees are looked for after the overriding: the new body may call any function of any folder. A
script that does not reach the function keeps its text and its SHA.

Why a script is atomic. Redis runs a script as one command: no other command comes in between, and nobody sees half of
its changes. Redis does not roll back a script that fails, so functions should read what they decide on before they
write.

What takes atomicity away, for mutants only: `split.py` and `rescripted.py`.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

_SIGNATURE = re.compile(r"^local function (\w+)\((.*)\)$", re.MULTILINE)
_NOISE = re.compile(r"--[^\n]*|'[^'\n]*'")
_WORD = re.compile(r"(?<![.\w])[a-z_]\w*")


class Script(NamedTuple):
    name: str
    text: str
    sha: str


def read_files(folder: Path) -> dict[str, Path]:
    """Returns the file of each function in the folder and all folders below it, by the function's name."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.lua")):
        if path.stem in found:
            raise ValueError(f"Two Lua functions are named {path.stem!r}: {found[path.stem]} and {path}; rename one.")
        found[path.stem] = path
    return found


@cache
def functions(folder: Path) -> Mapping[str, str]:
    """Returns the source of each function of a folder by its name."""
    return {name: path.read_text(encoding="utf-8") for name, path in read_files(folder).items()}


def with_body(source: str, body: str) -> str:
    """Returns the function with another body and the same signature."""
    signature = _SIGNATURE.search(source)
    if signature is None:
        raise ValueError(f"No signature of the form 'local function name(…)' in: {source}")
    return f"{signature.group(0)}\n{body}\nend\n"


def literal(value: Any) -> str:
    """Returns a Python value as Lua source."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"[{literal(k)}] = {literal(v)}" for k, v in value.items()) + "}"
    return "{" + ", ".join(literal(each) for each in value) + "}"


class Scripts:
    """All scripts of a node, assembled when the node starts. `overrides` maps a function's name to another body."""

    folder: ClassVar[Path]
    mains: ClassVar[tuple[str, ...]]

    def __init__(self, limits: Mapping[str, Any], overrides: Mapping[str, str]) -> None:
        self.limits = limits
        self.overrides = overrides
        self.sources = dict(functions(self.folder))
        for name, body in overrides.items():
            if name not in self.sources:
                raise ValueError(
                    f"No Lua function {name!r} to replace; the names are those of the files in {self.folder.name}/."
                )
            self.sources[name] = with_body(self.sources[name], body)
        self.all = {main: self.assemble(main) for main in self.mains}

    def assemble(self, main: str) -> Script:
        text = "\n".join([self.head(), *self._needed(main), self.tail(main)])
        return Script(main, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def head(self) -> str:
        return f"local limits = {literal(self.limits)}"

    def tail(self, main: str) -> str:
        return f"""local facts = cjson.decode(ARGV[1])
facts.now = now()
local answer = {main}(facts)
answer.at = math.floor(facts.now / 1000)
return cjson.encode(answer)
"""

    def _needed(self, main: str) -> list[str]:
        """Returns the sources of all functions that the main one reaches, callees before callers."""
        ordered: dict[str, None] = {}  # a set that keeps the order
        self._visit("now", ordered, ())
        self._visit(main, ordered, ())
        return [_NOISE.sub(_drop_comment, self.sources[name]) for name in ordered]

    def _visit(self, name: str, ordered: dict[str, None], path: tuple[str, ...]) -> None:
        """Adds a function after its callees; `path` is how it was reached from the main function."""
        if name in ordered:
            return
        if name in path:
            raise ValueError(f"Lua functions call each other in a circle: {' -> '.join((*path, name))}")
        for word in sorted(set(_WORD.findall(_NOISE.sub("", self.sources[name])))):
            if word in self.sources and word != name:
                self._visit(word, ordered, (*path, name))
        ordered[name] = None


def _drop_comment(match: re.Match[str]) -> str:
    return "" if match.group(0).startswith("--") else match.group(0)
