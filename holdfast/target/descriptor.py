"""A target: an implementation under test, read from its TOML descriptor.

Reading goes in two steps: `schema.problems` checks names and types and reports everything at once, then `_read` builds
frozen records and reports the first value that makes no sense. Both raise `TargetError`, whose text names the file, the
key and the remedy. A `Target` never changes; `at_scale`, `with_profile` and `with_setting` return another one.

What a target can do is derived, never declared. `capabilities` looks at what the descriptor contains: a node with
`start` can be killed and restarted, a `start` that mentions `{redis}` gets its Redis from the harness (`[store]` says
which kind) and can be cut off from it, one that mentions its peers can be cut off from them. A node that does without
Redis takes nothing from those that use it. What the operator declares is only the profile: how much of the catalogue
the run has to answer for.

Texts of the descriptor may hold placeholders (`{port}`, `{redis}`, `{nodes.b.url}`). They are filled in when a
deployment starts, because only then the ports are known; here they are only searched for.

Nodes, roles and their order are in `roles`, readiness in `ready`, ways of settings in `settings`.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast import rooms
from holdfast.spec.capability import HOOK, PROFILES, Capability, OwnCapability, in_profile
from holdfast.spec.catalogue import Catalogue, CatalogueError, builtin, builtin_keys, seconds
from holdfast.spec.timings import Timings
from holdfast.target import not_offered, roles, schema, store_section, values
from holdfast.target.entries import entry_point, from_environment, window
from holdfast.target.hooks import Hook, read_hooks
from holdfast.target.known_failure import KnownFailure, read_known_failure
from holdfast.target.link_names import split_link
from holdfast.target.not_offered import NotOffered
from holdfast.target.ready import Ready, read_ready
from holdfast.target.roles import NODE, Listener, NodeSpec, Start
from holdfast.target.settings import Setting, read_setting
from holdfast.target.store_section import StoreSpec
from holdfast.target.toml_file import read_toml

__all__ = ["KnownFailure", "NodeSpec", "Setting", "Start", "Target", "TargetError", "builtin_path", "load"]

_CONTROLS = {
    Capability.CONTROL_TERM: ("term",),
    Capability.CONTROL_KILL: ("kill",),
    Capability.CONTROL_RESTART: ("restart",),
    Capability.CONTROL_PAUSE: ("pause", "resume"),
}

# Placeholders by which a node learns where its peers are.
_PEER_PLACEHOLDERS = ("{nodes.", "{roles.", "{peers}", "{proxy}")
_REDIS_PLACEHOLDERS = ("{redis}", "{redis.", "{replica}", "{sentinels")
_HOOKS: tuple[str, ...] = ("term", "kill", "restart", "pause", "resume")


class TargetError(ValueError):
    """Raised for a descriptor that can't be used; the text names file, key and remedy, one problem per line."""


@dataclass(frozen=True)
class Target:
    """A descriptor as read. `scaled_limits` hold below the spec's own time only; `extra_settings` come from a run."""

    name: str
    spec: str
    version: str
    profile: str
    time_scale: float
    file: Path | None
    nodes: tuple[NodeSpec, ...]
    settings: Mapping[str, Setting]
    files: Mapping[str, str]
    credentials: Mapping[str, Any]
    observe: Mapping[str, Any]
    links: Mapping[str, Any]
    harness: Mapping[str, Any]
    timing_overrides: Mapping[str, float]
    limit_overrides: Mapping[str, float]
    scaled_limits: Mapping[str, float]
    dialect: Mapping[str, Any]
    known_failures: tuple[KnownFailure, ...]
    extra_settings: Mapping[str, str] = field(default_factory=dict)
    own_capabilities: tuple[OwnCapability, ...] = ()
    store: StoreSpec = field(default_factory=StoreSpec)
    # Hooks by `section.name`, and the sections that only this spec has.
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # How long this target may keep silent before it answers, in real seconds, by names that its driver knows.
    windows: Mapping[str, float] = field(default_factory=dict)
    not_offered: NotOffered = field(default_factory=NotOffered)

    @property
    def startable(self) -> bool:
        """Whether Holdfast starts every node itself, and so can make as many copies as checks need."""
        return all(node.start is not None for node in self.nodes)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of its nodes, in the order of the descriptor."""
        return roles.roles_of(self.nodes)

    def count(self, role: str) -> int:
        """Returns how many nodes of this role the descriptor lists."""
        return sum(node.role == role for node in self.nodes)

    def mentions(self, node: NodeSpec, *placeholders: str) -> bool:
        """Whether the node's command, its environment or the default of a setting that it takes has one of them."""
        ways = [way for setting in self.settings.values() if (way := setting.of(node.role))]
        defaults = [way.default or "" for way in ways]
        return node.mentions(*placeholders) or any(each in text for text in defaults for each in placeholders)

    def uses_redis(self, node: NodeSpec) -> bool:
        """Whether the harness gives this node its Redis."""
        return self.startable and self.mentions(node, *_REDIS_PLACEHOLDERS)

    @property
    def gets_redis(self) -> bool:
        """Whether the harness gives the nodes that use Redis theirs, so that it can put a link in between."""
        return any(self.uses_redis(node) for node in self.nodes)

    @property
    def tells_peers(self) -> bool:
        """Whether the harness gives nodes the addresses of others, so that it can put links in between."""
        if not self.startable or len(self.nodes) < 2:
            return False
        return any(self.mentions(node, *_PEER_PLACEHOLDERS) for node in self.nodes)

    def metrics_of(self, node: NodeSpec) -> Listener | None:
        """Returns where a node shows its metrics: as its own entry says, else as [observe] does for its role."""
        return node.metrics or _metrics_of(self.observe.get("metrics"), node.role)

    def capabilities(self) -> frozenset[str]:
        """Returns what this target lets us see or do, as its descriptor shows."""
        linked = bool(self.gets_redis or self.links or self.tells_peers)
        redis_linked = any("redis" in self.ends(link) for link in self.links.get("proxies", {}))
        offered: dict[str, bool] = {
            Capability.WIRE: True,
            Capability.CHAOS_PARTITION: linked,
            Capability.CHAOS_LATENCY: linked,
            Capability.CHAOS_REDIS: self.gets_redis or redis_linked,
            Capability.TAP: self.gets_redis,
            Capability.REDIS: self._observed("redis"),
            Capability.EVENTS: self._observed("events"),
            Capability.STORE: self._observed("store") or any(hook.section == "query" for hook in self.hooks.values()),
            Capability.METRICS: self._observed("metrics") or any(node.metrics for node in self.nodes),
            Capability.MULTI_NODE: any(self.count(role) > 1 for role in self.roles),
            Capability.CLOCK: self.startable and "clock_offset" in self.settings,
            Capability.FAULT_HOOK: self.startable and "fault_hook" in self.settings,
            **{name: self._controlled(hooks) for name, hooks in _CONTROLS.items()},
            **{own.name: bool(self._section(own.section).get(own.key)) for own in self.own_capabilities},
        }
        return frozenset(name for name, there in offered.items() if there)

    def _observed(self, key: str) -> bool:
        return self.observe.get(key) is not None

    def _controlled(self, hooks: tuple[str, ...]) -> bool:
        """Whether nodes of at least one role can be controlled: we start them, or each has these hooks."""
        return self.startable or any(self._hooked(role, hooks) for role in self.roles)

    def _hooked(self, role: str, hooks: tuple[str, ...]) -> bool:
        return all(hook in node.hooks for node in self.nodes if node.role == role for hook in hooks)

    def ends(self, link: str) -> tuple[str, str]:
        """Returns the two ends of a link of this target by its name; raises ValueError for any other name."""
        return split_link(link, [node.name for node in self.nodes])

    def in_profile(self) -> frozenset[str]:
        """Returns the capabilities that the declared profile answers for, whether the target has them or not."""
        return in_profile(self.profile, self.own_capabilities)

    def hook(self, capability: str) -> str:
        """Returns the one entry of a descriptor that would make this capability available."""
        own = {each.name: each.hook for each in self.own_capabilities}
        return own[capability] if capability in own else HOOK[Capability(capability)]

    def _section(self, name: str) -> Mapping[str, Any]:
        sections = {"credentials": self.credentials, "observe": self.observe, "dialect": self.dialect, **self.own}
        hooks = {hook.name: hook for hook in self.hooks.values() if hook.section == name}
        return sections.get(name, hooks)

    def timings(self, catalogue: Catalogue) -> Timings:
        """Returns the durations and limits of a run against this target, with its overrides."""
        limits = dict(self.limit_overrides)
        if self.time_scale < 1:
            limits |= self.scaled_limits
        return Timings(catalogue, self.time_scale, self.timing_overrides, limits)

    def at_scale(self, scale: float | None) -> "Target":
        return self if scale is None else replace(self, time_scale=_scale(scale))

    def with_profile(self, profile: str | None) -> "Target":
        return self if profile is None else replace(self, profile=_profile(profile))

    def with_setting(self, name: str, value: str) -> "Target":
        """Returns the same target with one more setting for every node, stronger than the descriptor's default."""
        return replace(self, extra_settings={**self.extra_settings, name: value})


def builtin_path(key: str) -> Path:
    """Returns the descriptor that starts the reference server of this spec."""
    return rooms.folder("fixtures") / "targets" / f"{key}.toml"


def load(path: Path, catalogue: Catalogue | None = None) -> Target:
    """Reads a descriptor. Raises TargetError with every problem that the schema finds, else the first other one.

    `catalogue` is the one that its spec is checked against, if not the built-in one.
    """
    try:
        data = read_toml(path)
    except ValueError as error:
        raise TargetError(f"{path}: {error}") from error
    known = catalogue or _catalogue_of(data)
    found = list(schema.problems(data, *((known.sections, known.hooks) if known else ())))
    if known and not found:
        found = list(not_offered.problems(data.get("not_offered", {}), known))
        found += values.problems(data, known, _example_of(known))
    if found:
        raise TargetError("\n".join(f"{path}: {problem}" for problem in found))
    try:
        return _read(data, path, known or builtin(data["target"]["spec"]))  # which says that there is no such spec
    except (ValueError, CatalogueError) as error:
        raise TargetError(f"{path}: {error}") from error


def _example_of(catalogue: Catalogue) -> dict[str, Any]:
    """Returns what the built-in target of a spec says; nothing where there is none."""
    path = builtin_path(catalogue.key)
    return read_toml(path) if path.is_file() else {}


def _catalogue_of(data: dict[str, Any]) -> Catalogue | None:
    """Returns the built-in catalogue of the descriptor's spec; None where it names none that there is."""
    head = data.get("target")
    spec = head.get("spec") if isinstance(head, dict) else None
    return builtin(spec) if spec in builtin_keys() else None


def _read(data: dict[str, Any], path: Path, catalogue: Catalogue) -> Target:
    head = data["target"]
    nodes = tuple(node for entry in data["node"] for node in _nodes(entry))
    if found := list(roles.problems(nodes)):
        raise TargetError("\n".join([found[0], *(f"{path}: {problem}" for problem in found[1:])]))
    target = Target(
        name=head["name"],
        spec=head["spec"],
        version=str(head.get("version", "")),
        profile=_profile(head.get("profile", "wire")),
        time_scale=_scale(float(head.get("time_scale", 1))),
        file=path,
        nodes=nodes,
        settings={
            name: read_setting(name, value, roles.roles_of(nodes)) for name, value in data.get("settings", {}).items()
        },
        files={name: entry_point(name, value) for name, value in data.get("files", {}).items()},
        credentials={name: from_environment(name, value) for name, value in data.get("credentials", {}).items()},
        observe=data.get("observe", {}),
        links=data.get("links", {}),
        harness={"bind": "127.0.0.1", "advertise": "127.0.0.1", **data.get("harness", {})},
        timing_overrides={name: seconds(text) for name, text in data.get("timings", {}).items()},
        limit_overrides=data.get("limits", {}),
        scaled_limits=data.get("scaled", {}).get("limits", {}),
        dialect=data.get("dialect", {}),
        known_failures=tuple(read_known_failure(key, entry) for key, entry in data.get("known_failures", {}).items()),
        own_capabilities=catalogue.capabilities,
        store=store_section.read(
            data.get("store", {}), _store_users(nodes), catalogue.timings, startable=all(node.start for node in nodes)
        ),
        hooks=read_hooks(data, path.parent),
        own={section.name: section.read(data.get(section.name, {})) for section in catalogue.sections},
        windows={name: window(name, text) for name, text in data.get("windows", {}).items()},
        not_offered=NotOffered(data.get("not_offered", {})),
    )
    _check_references(target)
    return target


def _check_references(target: Target) -> None:
    """Raises ValueError where [links] or [observe] name what the target does not have."""
    for link in target.links.get("proxies", {}):
        try:
            target.ends(link)
        except ValueError as error:
            raise ValueError(f"[links] proxies: {error}") from error
    if target.links.get("proxies") and "toxiproxy" not in target.links:
        raise ValueError('[links] toxiproxy: missing; name the Toxiproxy that has the proxies, "http://HOST:8474"')
    for role in target.roles:
        _metrics_of(target.observe.get("metrics"), role)
    for node in target.nodes:
        if node.metrics and not node.metrics.at(node.urls):
            known = ", ".join(node.urls) or "none"
            raise ValueError(f"[[node]] {node.name} metrics: no URL {node.metrics.url or 'http'!r}; urls has {known}")


def _store_users(nodes: Sequence[NodeSpec]) -> dict[str, list[str]]:
    """Returns for each placeholder of a store the names of the nodes that use it."""
    return {place: [node.name for node in nodes if node.mentions(place)] for place in store_section.PLACEHOLDERS}


def _profile(profile: str) -> str:
    if profile not in PROFILES:
        raise TargetError(f"[target] profile: {profile!r} is none of {', '.join(PROFILES)}")
    return profile


def _scale(scale: float) -> float:
    if not 0 < scale <= 1:
        raise TargetError(f"[target] time_scale: {scale:g} is not above 0 and at most 1")
    return scale


def _nodes(entry: dict[str, Any]) -> list[NodeSpec]:
    """Returns the nodes of one [[node]] entry, one for each of its names."""
    names = entry.get("names") or [entry.get("name", "a")]
    hooks: dict[str, str] = {hook: entry[hook] for hook in _HOOKS if hook in entry}
    urls: dict[str, str] = entry.get("urls", {})
    start = _start(entry.get("start"))
    return [
        NodeSpec(
            name=name,
            urls=urls,
            start=start,
            env={key: str(value) for key, value in entry.get("env", {}).items()},
            ready=_ready(name, entry.get("ready"), urls, started=start is not None),
            hooks=hooks,
            ready_as=entry.get("ready_as", ""),
            role=entry.get("role", NODE),
            after=tuple(entry.get("after", ())),
            metrics=_listener(f"[[node]] {name} metrics", entry["metrics"]) if "metrics" in entry else None,
        )
        for name in names
    ]


def _ready(name: str, value: Any, urls: Mapping[str, str], *, started: bool) -> Ready | None:
    """What the descriptor says; else the path /health, for a node that serves HTTP."""
    if value is None and not any(url.startswith(("http:", "https:")) for url in urls.values()):
        if started:
            raise ValueError(
                f"[[node]] {name} ready: missing; without an HTTP URL say when it is ready, e.g. "
                'ready = { tcp = "grpc" }, { redis-key = "nodes:{node}" } or { log = "started" }'
            )
        return None
    ready = read_ready("/health" if value is None else value)
    if found := list(ready.problems(urls)):
        raise ValueError(f"[[node]] {name} {found[0]}")
    return ready


def _metrics_of(value: Any, role: str) -> Listener | None:
    """What `[observe] metrics` says for nodes of this role: one place for all, or a table by role."""
    if isinstance(value, dict) and "path" not in value:
        return _listener(f"[observe] metrics {role}", value[role]) if role in value else None
    return None if value is None else _listener("[observe] metrics", value)


def _listener(where: str, value: Any) -> Listener:
    match value:
        case str():
            return Listener(value)
        case {"path": str(path), **others} if others.keys() <= {"url"}:
            return Listener(path, str(others.get("url", "")))
        case _:
            raise ValueError(f'{where}: write a path, or {{ url = "ops", path = "/metrics" }}')


def _start(value: Any) -> Start | None:
    match value:
        case None:
            return None
        case str():
            return Start(argv=tuple(shlex.split(value)))
        case list():
            return Start(argv=tuple(str(word) for word in value))
        case {"python": str(entry)}:
            return Start(python=entry, args=tuple(str(word) for word in value.get("args", ())))
        case _:
            raise ValueError('[[node]] start: write a command, or { python = "package.module:function", args = [] }')
