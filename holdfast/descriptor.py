"""The schema of a target descriptor, as data: the reader, `holdfast init` and `holdfast doctor` all come from it."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Key:
    types: tuple[type, ...]
    doc: str
    example: str = ""
    required: bool = False


def _text(doc: str, example: str = "", *, required: bool = False) -> Key:
    return Key((str,), doc, example, required)


SECTIONS: dict[str, dict[str, Key]] = {
    "target": {
        "name": _text("what the report calls it", '"my server"', required=True),
        "spec": _text("the specification it implements", '"admission"', required=True),
        "version": _text("its version, shown in the report", '"1.0"'),
        "profile": _text("wire, store, control or full: how much of the catalogue this run answers for", '"wire"'),
        "time_scale": Key((int, float), "1 = the spec's own time; smaller only if [settings] can tell the target", "1"),
    },
    "node": {
        "name": _text("one short name", '"a"'),
        "names": Key((list,), "several alike nodes in one entry", '["a", "b"]'),
        "role": _text("its part in the system, where a spec has several", '"node"'),
        "urls": Key((dict,), "where it listens, by protocol", '{ http = "http://127.0.0.1:3000" }', required=True),
        "start": Key((str, list, dict), "the command that starts it; then Holdfast makes as many copies as it needs"),
        "env": Key((dict,), "environment of `start`; placeholders as in `start`"),
        "ready": _text("path that answers 2xx once the node serves", '"/health"'),
        "ready_as": _text("PEM file with the certificate and key to show where `ready` is asked over TLS"),
        "term": _text("command that ends the node gracefully, where Holdfast did not start it"),
        "kill": _text("command that kills the node at once"),
        "restart": _text("command that starts the node again"),
        "pause": _text("command that freezes the node"),
        "resume": _text("command that lets a frozen node go on"),
    },
    "settings": {},
    "credentials": {},
    "observe": {
        "redis": _text("URL of the Redis to look into; {redis} for one that Holdfast starts", '"{redis}"'),
        "prefix": _text("prefix of every key", '"dev:"'),
        "keys": Key((dict,), "key templates that differ from the wire sheet"),
        "store": _text("command that answers a store query"),
        "metrics": _text("path of the Prometheus metrics", '"/metrics"'),
        "events": _text(
            '"stdout" for JSON lines on the output of a node that Holdfast started, or a file path', '"stdout"'
        ),
        "audit_sink": Key((bool,), "the target takes an audit sink ({sink})", "true"),
    },
    "links": {
        "toxiproxy": _text("URL of a Toxiproxy that already stands between the parts"),
        "proxies": Key((dict,), "proxy name for each link"),
    },
    "harness": {
        "bind": _text("address that our stubs, spies and relays bind", '"127.0.0.1"'),
        "advertise": _text("address under which the target reaches them", '"127.0.0.1"'),
    },
    "timings": {},
    "limits": {},
    "scaled": {"limits": Key((dict,), "limits that hold only while time_scale is below 1")},
    "dialect": {},
    "known_failures": {},
}

SECTION_DOC = {
    "target": "What is tested.",
    "node": "One entry a process. With `start` for every node, disruptive checks get copies of their own.",
    "settings": 'How a spec setting reaches the target: NAME = { env = "VARIABLE" } or { flag = "--option" }.',
    "credentials": 'What the suite needs to be let in; values may be "env:VARIABLE".',
    "observe": "Where else to look than on the wire.",
    "links": "Proxies that already stand between the target's parts.",
    "harness": "Where the target can reach us; loopback unless stated.",
    "timings": 'Durations in which the target differs from the catalogue, e.g. grace = "30s".',
    "limits": "Counts in which the target differs from the catalogue.",
    "scaled": "What holds only in a run that is faster than the spec's own time.",
    "dialect": "Spelling on the wire and optional features.",
    "known_failures": '"ID" or "ID#part" = { reason = "…", link = "…", expires = 2027-01-31 }',
}


def problems(data: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a parsed descriptor, one sentence each, with the remedy."""
    for section, content in data.items():
        if section not in SECTIONS:
            yield f"[{section}]: no such section{_meant(section, SECTIONS)}"
            continue
        entries = content if section == "node" else [content]
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            yield f"[{section}] must be {'a list: write [[node]]' if section == 'node' else 'a table'}"
            continue
        for number, entry in enumerate(entries, 1):
            where = f"[[node]] {entry.get('name', number)}" if section == "node" else f"[{section}]"
            yield from (f"{where} {problem}" for problem in _key_problems(section, entry))
    yield from (f"[{name}]: missing; {SECTION_DOC[name]}" for name in ("target", "node") if name not in data)


def _key_problems(section: str, entry: Mapping[str, Any]) -> Iterator[str]:
    keys = SECTIONS[section]
    if not keys:
        return
    for name, value in entry.items():
        if name not in keys:
            yield f"{name}: no such key{_meant(name, keys)}"
        elif not isinstance(value, keys[name].types):
            wanted = " or ".join(kind.__name__ for kind in keys[name].types)
            yield f"{name}: must be {wanted}, e.g. {keys[name].example or 'see holdfast init'}"
    for name, key in keys.items():
        if key.required and name not in entry:
            yield f"{name}: missing ({key.doc}), e.g. {name} = {key.example}"


def _meant(word: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(known)}"
