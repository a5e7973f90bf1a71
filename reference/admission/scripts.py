"""Puts the Lua functions together: one file a function, one script a task (spec 1, 11).

A script is its main function with everything it calls. The node's limits stand as a table at the top; facts
come as one JSON argument; the verdict goes back as JSON with the Redis time of the run in `at`.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "lua"

MAINS = (
    "decide",
    "undo",
    "attach",
    "beat",
    "drop",
    "leave",
    "status",
    "unqueue",
    "cancel",
    "promotable",
    "promote",
    "reap",
    "restore",
    "gauges",
    "register_instance",
    "register_character",
    "switch_drain",
    "drain_modes",
)

_SIGNATURE = re.compile(r"^local function (\w+)\((.*)\)$", re.MULTILINE)
_NOISE = re.compile(r"--[^\n]*|'[^'\n]*'")
_WORD = re.compile(r"(?<![.\w])[a-z_]\w*")


class Script(NamedTuple):
    name: str
    text: str
    sha: str


@cache
def functions() -> Mapping[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.lua"))}


def with_body(source: str, body: str) -> str:
    """The function with another body, its signature kept."""
    signature = _SIGNATURE.search(source)
    if signature is None:
        raise ValueError(f"No signature of the form 'local function name(…)' in: {source}")
    return f"{signature.group(0)}\n{body}\nend\n"


def literal(value: Any) -> str:
    """A Python value as Lua source."""
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
    """All scripts of a node. `overrides` maps a function's name to another body."""

    def __init__(self, limits: Mapping[str, Any], overrides: Mapping[str, str]) -> None:
        self.limits = limits
        self.overrides = overrides
        self.sources = dict(functions())
        for name, body in overrides.items():
            if name not in self.sources:
                raise ValueError(f"No Lua function {name!r} to replace; see {FOLDER.name}/.")
            self.sources[name] = with_body(self.sources[name], body)
        self.all = {main: self.assemble(main) for main in MAINS}

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
        """Sources of all functions that the main one reaches, callees first, as Lua wants them."""
        ordered: dict[str, None] = {}
        self._visit("now", ordered, ())
        self._visit(main, ordered, ())
        return [_NOISE.sub(_drop_comment, self.sources[name]) for name in ordered]

    def _visit(self, name: str, ordered: dict[str, None], path: tuple[str, ...]) -> None:
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
