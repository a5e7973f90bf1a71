"""What is wrong with the values of a descriptor whose keys and types are right, one sentence each, with the remedy.

Names that only the spec knows are compared with its catalogue and with its built-in target: timings, limits, settings,
kinds of URLs, requirements. A setting or a kind of URL that is like no known one is left alone: a check may know it.
"""

import datetime as dt
import difflib
import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from holdfast.spec.catalogue import Catalogue, CatalogueError, seconds
from holdfast.spec.own import nearest

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_ALWAYS = ("http", "https")
_SETTINGS_OF_OURS = ("clock_offset", "fault_hook", "violate", "stranger")
_IN_AN_ENTRY = ("reason", "link", "expires")
# How alike two names are, from 0 to 1, if one is taken for the other misspelt.
_MISSPELT = 0.75


def problems(data: Mapping[str, Any], catalogue: Catalogue, example: Mapping[str, Any]) -> Iterator[str]:
    """`example` is the built-in target of the spec as its file says it; empty if there is none."""
    for number, entry in enumerate(data["node"], 1):
        where = f"[[node]] {entry.get('name') or next(iter(entry.get('names', ())), number)}"
        yield from (f"{where} {problem}" for problem in _node_problems(entry, data, example))
    if not data["target"]["name"].strip():
        yield '[target] name: empty; write what the report is to call it, e.g. name = "my server"'
    yield from _observe_problems(data.get("observe", {}), data["node"])
    yield from _type_problems("[observe] keys", data.get("observe", {}).get("keys", {}), str, "text")
    yield from _type_problems("[links] proxies", data.get("links", {}).get("proxies", {}), str, "the name of a proxy")
    yield from _type_problems("[harness] ports", data.get("harness", {}).get("ports", {}), int, "a port")
    yield from _url_problems("[links] toxiproxy", data.get("links", {}).get("toxiproxy"))
    yield from _timing_problems(data.get("timings", {}), catalogue)
    for where, table in (("[limits]", data.get("limits", {})), ("[scaled] limits", _scaled(data))):
        yield from _limit_problems(where, table, catalogue)
    yield from _setting_problems(data.get("settings", {}), catalogue, example, json.dumps(data, default=str))
    for key, entry in data.get("known_failures", {}).items():
        yield from (f"[known_failures] {key}: {problem}" for problem in _known_problems(key, entry, catalogue))


def url_problem(url: str) -> str:
    """What is wrong with a URL, placeholders aside; empty if nothing is."""
    plain = _PLACEHOLDER.sub("1", url)
    if "://" not in plain:
        return f'{url!r} has no scheme; write it like "http://127.0.0.1:3000"'
    try:
        parts = urlsplit(plain)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"{url!r} is no URL ({error}); write it like http://127.0.0.1:3000"
    return "" if host else f"{url!r} names no host; write it like http://127.0.0.1:3000"


def _node_problems(entry: Mapping[str, Any], data: Mapping[str, Any], example: Mapping[str, Any]) -> Iterator[str]:
    names = entry.get("names", ["a"])
    if not names or not all(isinstance(name, str) for name in names):
        yield 'names: must be names, e.g. names = ["a", "b"]'
    known = {*_ALWAYS, *(kind for node in example.get("node", ()) for kind in node.get("urls", {}))}
    said = json.dumps([data["node"], data.get("settings"), data.get("observe")], default=str)
    for kind, url in entry.get("urls", {}).items():
        if not isinstance(url, str):
            yield f'urls {kind}: must be text, e.g. {kind} = "http://127.0.0.1:3000"'
        elif problem := url_problem(url) or _another_scheme(kind, url):
            yield f"urls {kind}: {problem}"
        elif kind not in known and not _mentioned(kind, said) and (meant := _misspelt(kind, known)):
            yield f"urls {kind}: no check uses such a URL; did you mean {meant!r}?"
    yield from _type_problems("env", entry.get("env", {}), str | int | float, "text or a number")
    yield from _start_problems(entry.get("start"))


def _type_problems(where: str, table: Mapping[str, Any], kinds: Any, word: str) -> Iterator[str]:
    yield from (f"{where} {name}: must be {word}" for name, value in table.items() if not isinstance(value, kinds))


def _another_scheme(kind: str, url: str) -> str:
    scheme = urlsplit(_PLACEHOLDER.sub("1", url)).scheme
    if kind in _ALWAYS and scheme != kind:
        return f"{url!r} is no {kind} URL; write {scheme} = {json.dumps(url)}, or {kind}://…"
    return ""


def _mentioned(kind: str, said: str) -> bool:
    """Whether another entry of the descriptor uses the URL of this name."""
    return f'"{kind}"' in said.replace(f'"{kind}": ', "") or f".{kind}}}" in said or f".{kind}." in said


def _start_problems(start: Any) -> Iterator[str]:
    try:
        words = shlex.split(start) if isinstance(start, str) else start
    except ValueError as error:
        yield f"start: {start!r} is no command ({error})"
        return
    if isinstance(words, dict) and str(words.get("python", ":")).count(":") != 1:
        yield f'start: python = {words["python"]!r} names no function; write "package.module:function"'
    elif words is not None and not words:
        yield 'start: empty; write the command that starts the node, e.g. start = "node server.js"'


def _observe_problems(observe: Mapping[str, Any], nodes: Collection[Mapping[str, Any]]) -> Iterator[str]:
    redis = observe.get("redis", "{redis}")
    if not redis.startswith("{"):
        yield from _url_problems("[observe] redis", redis, "redis://127.0.0.1:6379", ("redis", "rediss", "unix"))
    if observe.get("events") == "stdout" and not any("start" in node for node in nodes):
        yield '[observe] events: "stdout" is that of nodes which Holdfast starts; name the file that your server writes'


def _url_problems(
    where: str, url: str | None, like: str = "http://127.0.0.1:8474", schemes: Collection[str] = _ALWAYS
) -> Iterator[str]:
    if url is not None and not url.startswith("{") and (url_problem(url) or urlsplit(url).scheme not in schemes):
        yield f"{where}: {url!r} is no such URL; write it like {like}"


def _timing_problems(timings: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    for name, text in timings.items():
        if name not in catalogue.timings:
            yield f"[timings] {name}: no such timing of {catalogue.key}{nearest(name, catalogue.timings)}"
            continue
        try:
            seconds(text)
        except (CatalogueError, TypeError):
            yield f'[timings] {name}: {text!r} is no duration; write {name} = "30s"'


def _limit_problems(where: str, limits: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    for name, number in limits.items():
        if name not in catalogue.limits:
            yield f"{where} {name}: no such limit of {catalogue.key}{nearest(name, catalogue.limits)}"
        elif isinstance(number, bool) or not isinstance(number, int | float):
            yield f"{where} {name}: {number!r} is no number; write {name} = {catalogue.limits[name]:g}"


def _scaled(data: Mapping[str, Any]) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = data.get("scaled", {}).get("limits", {})
    return limits


def _setting_problems(
    settings: Mapping[str, Any], catalogue: Catalogue, example: Mapping[str, Any], said: str
) -> Iterator[str]:
    known = [*example.get("settings", {}), *catalogue.timings, *catalogue.limits, *_SETTINGS_OF_OURS]
    for name, value in settings.items():
        ways = value if isinstance(value, list) else [value]
        used = any(isinstance(way, dict) and "default" in way for way in ways) or f"{{settings.{name}}}" in said
        if name not in known and not used and (meant := _misspelt(name, known)):
            yield f"[settings] {name}: no such setting of {catalogue.key}; did you mean {meant!r}?"


def _misspelt(name: str, known: Collection[str]) -> str:
    """The known name that this one is taken for; empty if it is like none."""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_MISSPELT)), "")


def _known_problems(key: str, entry: Any, catalogue: Catalogue) -> Iterator[str]:
    row, hash_, part = key.partition("#")
    if row not in catalogue.requirements:
        ids = difflib.get_close_matches(row, catalogue.requirements, n=1)
        near = f"did you mean {ids[0]!r}?" if ids else "see holdfast requirements"
        yield f"no requirement of {catalogue.key}; {near}"
    elif hash_ and not (part.isdecimal() and 1 <= int(part) <= len(catalogue.requirements[row].parts)):
        yield f"there is no such part; see holdfast explain {row}"
    if not isinstance(entry, dict) or not isinstance(entry.get("reason"), str) or not entry["reason"].strip():
        yield 'write { reason = "…", expires = 2027-01-31 }'
        return
    for name, value in entry.items():
        if name not in _IN_AN_ENTRY:
            yield f"{name}: no such key{nearest(name, _IN_AN_ENTRY)}"
        elif name == "expires" and (isinstance(value, dt.datetime) or not isinstance(value, dt.date)):
            yield f"expires: {value!s} is no date; write expires = 2027-01-31, without quotes"
