"""Hooks of a descriptor: how a check gives the target work, asks its store or writes into it.

    [stimulus]
    enqueue = { redis = ["XADD", "jobs", "*", "data", "{json}"] }
    cancel = { http = "POST {nodes.a.url}/jobs/{job_id}/cancel", headers = { x-key = "{credentials.key}" } }

    [query]
    job = { exec = "./ask-database.sh job {job_id}", timeout = "5s" }

    [seed]
    job = { redis = { script = "seed-job.lua", keys = ["job:{job_id}"], args = ["{json}"] } }

A hook has exactly one of three kinds. `exec` is a command, run through the deployment; its words are split before they
are filled, so a value with spaces stays one word. `http` is a method and a URL. `redis` is one command, several
commands (done in one transaction), or a Lua script in a file beside the descriptor.

Its texts may hold the parameters that the check names, `{json}` for all of them as one JSON object, and the
placeholders of the deployment. A body that is a table becomes JSON, in which a text that is nothing but one parameter
takes the parameter's own type. This module only reads; `holdfast.check.hooks` fills and calls.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.spec.catalogue import seconds
from holdfast.spec.own import HOOK_SECTIONS, nearest

DEFAULT_TIMEOUT = 30.0
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# What may stand beside each kind.
_BESIDE: dict[str, tuple[str, ...]] = {"exec": ("env",), "http": ("headers", "body", "cert"), "redis": ()}
_EXAMPLES = {
    "exec": '{ exec = "command {job_id}" }',
    "http": '{ http = "POST {nodes.a.url}/jobs", body = { id = "{job_id}" } }',
    "redis": '{ redis = ["XADD", "jobs", "*", "data", "{json}"] }',
}


@dataclass(frozen=True)
class Script:
    """A Lua script, read from its file, with its keys and arguments."""

    file: Path
    text: str
    keys: tuple[str, ...]
    args: tuple[str, ...]


@dataclass(frozen=True)
class Hook:
    """One hook as the descriptor has it, with its placeholders; only the fields of its kind are filled."""

    section: str
    name: str
    kind: str
    timeout: float = DEFAULT_TIMEOUT
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    cert: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    script: Script | None = None

    @property
    def entry(self) -> str:
        """The entry of the descriptor, as messages name it."""
        return entry_of(f"{self.section}.{self.name}")

    def texts(self) -> Iterator[str]:
        """All of its texts that may hold placeholders."""
        yield from (*self.argv, *self.env.values(), self.url, *self.headers.values(), self.cert)
        yield from (word for command in self.commands for word in command)
        yield from (*self.script.keys, *self.script.args) if self.script else ()
        yield from _texts_in(self.body)

    def says(self) -> str:
        """What it does, in one line, with its placeholders."""
        match self.kind:
            case "exec":
                return shlex.join(self.argv)
            case "http":
                return f"{self.method} {self.url}"
            case _ if self.script:
                return f"script {self.script.file.name}"
            case _:
                return "; ".join(shlex.join(command) for command in self.commands)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def entry_of(name: str) -> str:
    """`stimulus.enqueue` as the descriptor has it: `[stimulus] enqueue`."""
    section, _, rest = name.partition(".")
    return f"[{section}] {rest}"


def read_hooks(data: Mapping[str, Any], folder: Path) -> dict[str, Hook]:
    """Returns the hooks of a descriptor by `section.name`; a script is looked for below `folder`.

    The store command of [observe] is one of them. Raises ValueError with the entry and the remedy.
    """
    found = {
        f"{section}.{name}": read_hook(section, name, value, folder)
        for section in HOOK_SECTIONS
        for name, value in data.get(section, {}).items()
    }
    if store := data.get("observe", {}).get("store"):
        found["observe.store"] = read_hook("observe", "store", store, folder)
    return found


def read_hook(section: str, name: str, value: Any, folder: Path) -> Hook:
    where = f"[{section}] {name}"
    if isinstance(value, str):
        value = {"exec": value}
    kinds = [kind for kind in _BESIDE if isinstance(value, dict) and kind in value]
    if len(kinds) != 1:
        raise ValueError(f"{where}: write exactly one of {', '.join(_EXAMPLES.values())}")
    kind = kinds[0]
    allowed = (kind, "timeout", *_BESIDE[kind])
    for key in value:
        if key not in allowed:
            raise ValueError(f"{where} {key}: no such key of a hook with {kind}{nearest(key, allowed)}")
    hook = Hook(section, name, kind, timeout=seconds(value["timeout"]) if "timeout" in value else DEFAULT_TIMEOUT)
    fields = {"exec": _exec, "http": _http, "redis": _redis}[kind](where, value, folder)
    return Hook(**{**vars(hook), **fields})


def _exec(where: str, value: Mapping[str, Any], _folder: Path) -> dict[str, Any]:
    command = value["exec"]
    words = shlex.split(command) if isinstance(command, str) else command
    if not _is_texts(words) or not words:
        raise ValueError(f"{where} exec: write a command, or a list of its words")
    return {"argv": tuple(map(str, words)), "env": _texts(where, "env", value)}


def _http(where: str, value: Mapping[str, Any], _folder: Path) -> dict[str, Any]:
    method, _, url = str(value["http"]).partition(" ")
    if method not in METHODS or not url.strip():
        raise ValueError(f'{where} http: write a method and a URL, as in "POST {{nodes.a.url}}/jobs"')
    if not isinstance(value.get("body"), str | dict | list | None):
        raise ValueError(f"{where} body: write a text, or a table that becomes JSON")  # noqa: TRY004 the user's mistake
    return {
        "method": method,
        "url": url.strip(),
        "headers": _texts(where, "headers", value),
        "body": value.get("body"),
        "cert": str(value.get("cert", "")),
    }


def _redis(where: str, value: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    given = value["redis"]
    if isinstance(given, dict):
        return {"script": _script(where, given, folder)}
    commands = given if isinstance(given, list) and given and isinstance(given[0], list) else [given]
    if not all(_is_texts(command) and command for command in commands):
        raise ValueError(
            f'{where} redis: write one command (["SET", "key", "{{value}}"]), a list of commands, or '
            '{ script = "file.lua", keys = [], args = [] }'
        )
    return {"commands": tuple(tuple(map(str, command)) for command in commands)}


def _script(where: str, given: Mapping[str, Any], folder: Path) -> Script:
    for key in given:
        if key not in ("script", "keys", "args"):
            raise ValueError(f"{where} redis {key}: no such key{nearest(key, ('script', 'keys', 'args'))}")
    file = folder / str(given.get("script", ""))
    if not file.is_file():
        raise ValueError(f"{where} redis script: {file} is no file; name one relative to the descriptor")
    keys, args = (given.get(name, []) for name in ("keys", "args"))
    if not _is_texts(keys) or not _is_texts(args):
        raise ValueError(f"{where} redis: keys and args are lists of texts")
    return Script(file, file.read_text(encoding="utf-8"), tuple(map(str, keys)), tuple(map(str, args)))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str | int | float) for word in value)


def _texts(where: str, key: str, value: Mapping[str, Any]) -> dict[str, str]:
    table = value.get(key, {})
    if not isinstance(table, dict):
        raise ValueError(f'{where} {key}: write a table, as in {{ NAME = "value" }}')  # noqa: TRY004 the user's mistake
    return {name: str(text) for name, text in table.items()}
