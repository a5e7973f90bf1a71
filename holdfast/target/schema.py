"""The schema of a target descriptor, as data: the reader and `holdfast init` both derive from these tables.

`problems` checks a parsed file; `holdfast init` writes a commented descriptor from `doc` and `example`. So a key exists
if, and only if, it is in `SECTIONS`. A section with an empty table is open: its keys are settings, timings or
credentials of the spec, which only the catalogue and the driver know. Only names and types are checked here; what
values mean is up to `descriptor`.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.spec.own import HOOK_SECTIONS, DeclaredHook, OwnSection, nearest


@dataclass(frozen=True)
class Key:
    """One key of a section: its types, what it means, and how `holdfast init` writes it."""

    types: tuple[type, ...]
    doc: str
    example: str = ""
    required: bool = False
    shown: bool = False  # `holdfast init` writes it as if it were required


# Types in the words of TOML.
_WORDS: dict[type, str] = {str: "text", int: "a number", float: "a number", list: "a list", dict: "a table"}


def _text(doc: str, example: str = "", *, required: bool = False) -> Key:
    return Key((str,), doc, example, required)


SECTIONS: dict[str, dict[str, Key]] = {
    "target": {
        "name": _text("what the report calls it", '"my server"', required=True),
        "spec": _text("the specification it implements", '"admission"', required=True),
        "version": _text("its version, shown in the report", '"1.0"'),
        "profile": _text("wire, store, control or full: how much of the catalogue this run answers for", '"wire"'),
        "time_scale": Key(
            (int, float), "1 = the spec's own time; smaller only if [settings] can make the target faster", "1"
        ),
    },
    "node": {
        "name": _text("one short name", '"a"'),
        "names": Key((list,), "several nodes that are alike, in one entry", '["a", "b"]'),
        "role": _text('what kind of node it is, where there are several kinds ("node" if not given)', '"api"'),
        "urls": Key(
            (dict,),
            "where it listens, by protocol; none if it does not",
            '{ http = "http://127.0.0.1:3000" }',
            shown=True,
        ),
        "start": Key(
            (str, list, dict),
            "the command that starts it; then Holdfast makes as many copies as it needs",
            '"node server.js"',
        ),
        "env": Key((dict,), "environment of `start`; placeholders as in `start`", '{ PORT = "{port}" }'),
        "ready": Key(
            (str, dict),
            "path that answers 2xx once the node serves, or { tcp | grpc = URL name }, { redis-key | redis-stream = "
            'NAME }, { log = PATTERN }; with within = "15s"',
            '"/health"',
        ),
        "ready_as": _text("PEM file with the certificate and key to show where `ready` is asked over TLS", '"me.pem"'),
        "after": Key((list,), "roles whose nodes must be ready before this one starts", '["gc"]'),
        "metrics": Key((str, dict), "where its Prometheus metrics are, if not where [observe] says", '"/metrics"'),
        "term": _text(
            "command that ends the node gracefully, where Holdfast did not start it; {node} is its name",
            '"docker stop mine-{node}"',
        ),
        "kill": _text("command that kills the node at once", '"docker kill mine-{node}"'),
        "restart": _text("command that starts the node again", '"docker start mine-{node}"'),
        "pause": _text("command that freezes the node", '"docker pause mine-{node}"'),
        "resume": _text("command that lets a frozen node go on", '"docker unpause mine-{node}"'),
    },
    "store": {
        "kind": _text('none, redis, replica or sentinel; "redis" where a node uses {redis}', '"redis"'),
        "replicas": Key((int,), "replicas of the primary, for replica and sentinel", "1"),
        "sentinels": Key((int,), "Sentinels that watch the primary", "3"),
        "quorum": Key((int,), "Sentinels that must agree that the primary is down", "2"),
        "down_after": _text("silence after which it is; a duration or the name of a timing, which scales", '"5s"'),
        "failover_timeout": _text("time for one failover, as a duration or a timing", '"30s"'),
        "master_name": _text("the name under which the Sentinels know the primary", '"mymaster"'),
        "mutants": Key((dict,), 'other values for one mutant: "ID/n" = { quorum = 1 }', "{}"),
    },
    "settings": {},
    "files": {},
    "credentials": {},
    "observe": {
        "redis": _text("URL of the Redis to look into; {redis} for one that Holdfast starts", '"{redis}"'),
        "prefix": _text("prefix of every key", '"dev:"'),
        "keys": Key((dict,), "key templates that differ from the wire sheet", '{ session = "my:{id}" }'),
        "store": _text("command that answers a store query", '"my-store-query"'),
        "metrics": Key(
            (str, dict),
            'path of the Prometheus metrics, or { url = "ops", path = "/metrics" } for another of the urls, or one of '
            "these for each role",
            '"/metrics"',
        ),
        "events": _text(
            '"stdout" for JSON lines on the output of a node that Holdfast started, or a file path', '"stdout"'
        ),
    },
    "stimulus": {},
    "query": {},
    "seed": {},
    "links": {
        "toxiproxy": _text("URL of a Toxiproxy that is already between the parts", '"http://127.0.0.1:8474"'),
        "proxies": Key(
            (dict,),
            "proxy name for each link: <node>-redis, or <node>-<node> for the way from the first to the second",
            '{ a-redis = "redis_of_a" }',
        ),
    },
    "harness": {
        "bind": _text("address that Holdfast's stubs, spies and relays bind", '"127.0.0.1"'),
        "advertise": _text("address under which the target reaches them", '"127.0.0.1"'),
        "ports": Key((dict,), "fixed ports of stubs, for a target that is told of them beforehand", "{ gc = 9001 }"),
    },
    "timings": {},
    "limits": {},
    "scaled": {"limits": Key((dict,), "limits that hold only while time_scale is below 1", "{}")},
    "windows": {},
    "dialect": {},
    "not_offered": {},
    "known_failures": {},
}

SECTION_DOC = {
    "target": "What is tested.",
    "node": "One entry a process, or a kind of process. With `start` for every node, disruptive checks get copies.",
    "store": "The Redis that each deployment gets, where Holdfast starts the nodes.",
    "settings": 'How a spec setting reaches the target: NAME = { env = "VARIABLE" } or { flag = "--option" }; '
    'unit = "seconds", "ms", "go" (1m30s) or "iso" (PT1M30S) for durations, roles = ["api"] where only some take it.',
    "files": 'Files made for each deployment: NAME = "package.module:function"; {files.NAME} is their folder.',
    "credentials": 'What the suite needs to be admitted; values may be "env:VARIABLE".',
    "observe": "Where to look besides the wire.",
    "stimulus": "How the suite gives the target work for which its document has no call. NAME = one of "
    '{ exec = "command {job_id}" }, { http = "POST {nodes.a.url}/jobs", body = { id = "{job_id}" } }, '
    '{ redis = ["XADD", "jobs", "*", "data", "{json}"] }; without a hook its rows are not-observable.',
    "query": "Questions to the target's store, each answered by one JSON document; same three kinds, reads only.",
    "seed": "Records that the suite writes into the target's store, also while no node runs; same three kinds.",
    "links": "Proxies that are already between the target's parts, e.g. in its containers' own network.",
    "harness": "Where the target can reach Holdfast; loopback unless stated.",
    "timings": "Durations in which the target differs from the catalogue, in the spec's own time: they are scaled with "
    'time_scale, e.g. grace = "30s".',
    "limits": "Counts in which the target differs from the catalogue.",
    "scaled": "What holds only in a run that is faster than the spec's own time.",
    "windows": "How long the target may keep silent before it answers, where it states longer than the suite would "
    'wait, e.g. leave = "45s"; real seconds at every time scale.',
    "not_offered": 'What the target does without: "ID", "ID#part", a group, a capability, or a cause that a run names '
    '("admin calls") = "why". Its rows are not-applicable; without one, a row that nobody can observe makes exit 2.',
    "dialect": "Spelling on the wire and optional features.",
    "known_failures": '"ID" or "ID#part" = { reason = "…", link = "…", expires = 2027-01-31 }',
}

_CREDENTIAL = re.compile(r"\{credentials\.([\w-]+)\}")


def problems(
    data: Mapping[str, Any], own: Sequence[OwnSection] = (), hooks: Sequence[DeclaredHook] = ()
) -> Iterator[str]:
    """Yields what is wrong with a parsed descriptor, one sentence each, with the remedy.

    `own` and `hooks` are the sections and hooks that the catalogue of its spec declares.
    """
    of_spec = {section.name: section for section in own}
    for section, content in data.items():
        if section in of_spec:
            yield from of_spec[section].problems(_without_named(of_spec[section], content, data))
            continue
        if section not in SECTIONS:
            yield f"[{section}]: no such section{nearest(section, dict.fromkeys([*SECTIONS, *of_spec]))}"
            continue
        entries = content if section == "node" else [content]
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            yield f"[{section}] must be {'a list: write [[node]]' if section == 'node' else 'a table'}"
            continue
        for number, entry in enumerate(entries, 1):
            where = f"[[node]] {entry.get('name', number)}" if section == "node" else f"[{section}]"
            yield from (f"{where} {problem}" for problem in _key_problems(section, entry))
        if section in HOOK_SECTIONS:
            yield from _unknown_hooks(section, content, hooks)
    for name in ("target", "node"):
        if name not in data and not difflib.get_close_matches(name, data.keys() - SECTIONS.keys(), n=1):
            yield f"[{name}]: missing; {SECTION_DOC[name]}"
    yield from (problem for name in of_spec.keys() - data.keys() for problem in of_spec[name].problems({}))


def _without_named(section: OwnSection, content: Any, data: Mapping[str, Any]) -> Any:
    """Returns the content without credentials of the user's own, which a placeholder of the descriptor names."""
    if section.name != "credentials" or not isinstance(content, dict):
        return content
    own = set(_CREDENTIAL.findall(repr(data))) - section.keys.keys()
    return {name: value for name, value in content.items() if name not in own}


def _unknown_hooks(section: str, content: Mapping[str, Any], hooks: Sequence[DeclaredHook]) -> Iterator[str]:
    """Yields hooks that no check of the spec calls; nothing for a spec that does not declare its hooks."""
    known = [hook.name for hook in hooks if hook.section == section]
    for name in content if hooks else ():
        if name not in known:
            yield f"[{section}] {name}: no check calls such a hook{nearest(name, known)}"


def _key_problems(section: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yields unknown keys, wrong types and missing required keys; nothing for an open section."""
    keys = SECTIONS[section]
    if not keys:
        return
    for name, value in entry.items():
        if name not in keys:
            yield f"{name}: no such key{nearest(name, keys)}"
        elif isinstance(value, bool) or not isinstance(value, keys[name].types):
            wanted = " or ".join(dict.fromkeys(_WORDS[kind] for kind in keys[name].types))
            example = f"e.g. {name} = {keys[name].example}" if keys[name].example else "see holdfast init"
            yield f"{name}: must be {wanted}, {example}"
    for name, key in keys.items():
        if key.required and name not in entry:
            yield f"{name}: missing ({key.doc}), e.g. {name} = {key.example}"
