"""A target: an implementation under test, read from its TOML descriptor."""

import datetime as dt
import os
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast import descriptor
from holdfast.capability import PROFILES, Capability
from holdfast.catalogue import Catalogue, CatalogueError, seconds
from holdfast.timings import Timings

_CONTROLS = {
    Capability.CONTROL_TERM: ("term",),
    Capability.CONTROL_KILL: ("kill",),
    Capability.CONTROL_RESTART: ("restart",),
    Capability.CONTROL_PAUSE: ("pause", "resume"),
}

# Any of these tells a node where its peers are.
_PEERS = ("{nodes.", "{peers}", "{proxy}")
_HOOKS: tuple[str, ...] = ("term", "kill", "restart", "pause", "resume")


class TargetError(ValueError):
    """The descriptor can't be used; the text names file, key and remedy, one problem a line."""


@dataclass(frozen=True)
class Start:
    """A command, or a Python entry point that the guardian can fork without a cold start."""

    argv: tuple[str, ...] = ()
    python: str | None = None
    args: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        return self.argv or self.args


@dataclass(frozen=True)
class NodeSpec:
    name: str
    role: str
    urls: Mapping[str, str]
    start: Start | None
    env: Mapping[str, str]
    ready: str
    hooks: Mapping[str, str]
    ready_as: str = ""

    def mentions(self, placeholder: str) -> bool:
        words = [*self.env.values(), *(self.start.words() if self.start else ())]
        return any(placeholder in word for word in words)


@dataclass(frozen=True)
class Setting:
    """How one spec setting reaches the target: an environment variable or a flag; and what every node starts with."""

    env: str | None = None
    flag: str | None = None
    default: str | None = None


@dataclass(frozen=True)
class KnownFailure:
    id: str
    part: int | None
    reason: str
    link: str
    expires: dt.date | None

    def expired(self, today: dt.date) -> bool:
        return self.expires is not None and self.expires < today


@dataclass(frozen=True)
class Target:
    name: str
    spec: str
    version: str
    profile: str
    time_scale: float
    file: Path | None
    nodes: tuple[NodeSpec, ...]
    settings: Mapping[str, Setting]
    credentials: Mapping[str, Any]
    observe: Mapping[str, Any]
    links: Mapping[str, Any]
    harness: Mapping[str, str]
    timing_overrides: Mapping[str, float]
    limit_overrides: Mapping[str, float]
    scaled_limits: Mapping[str, float]
    dialect: Mapping[str, Any]
    known_failures: tuple[KnownFailure, ...]
    extra_settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def startable(self) -> bool:
        return all(node.start is not None for node in self.nodes)

    @property
    def gets_redis(self) -> bool:
        """The harness gives each node its Redis, so it can stand in between."""
        return self.startable and all(node.mentions("{redis}") for node in self.nodes)

    @property
    def tells_peers(self) -> bool:
        """The harness tells each node where the others are, so it can stand between any two."""
        several = self.startable and len(self.nodes) > 1
        told = [setting.default or "" for setting in self.settings.values()]
        return several and any(
            any(way in text for text in told) or any(node.mentions(way) for node in self.nodes) for way in _PEERS
        )

    def capabilities(self) -> frozenset[Capability]:
        found = {Capability.WIRE}
        if self.gets_redis or self.links or self.tells_peers:
            found |= {Capability.CHAOS_PARTITION, Capability.CHAOS_LATENCY}
        if self.gets_redis or any(way.endswith("-redis") for way in self.links.get("proxies", {})):
            found.add(Capability.CHAOS_REDIS)
        if self.gets_redis:
            found.add(Capability.TAP)
        found |= {
            Capability(key) for key in ("redis", "store", "metrics", "events") if self.observe.get(key) is not None
        }
        for capability, hooks in _CONTROLS.items():
            if self.startable or all(hook in node.hooks for node in self.nodes for hook in hooks):
                found.add(capability)
        if len(self.nodes) > 1:
            found.add(Capability.MULTI_NODE)
        if "clock_offset" in self.settings and self.startable:
            found.add(Capability.CLOCK)
        if "fault_hook" in self.settings and self.startable:
            found.add(Capability.FAULT_HOOK)
        if self.credentials.get("bundle_tool"):
            found.add(Capability.BUNDLE_TOOL)
        return frozenset(found)

    def in_profile(self) -> frozenset[Capability]:
        return PROFILES[self.profile]

    def timings(self, catalogue: Catalogue) -> Timings:
        limits = dict(self.limit_overrides)
        if self.time_scale < 1:
            limits |= self.scaled_limits
        return Timings(catalogue, self.time_scale, self.timing_overrides, limits)

    def at_scale(self, scale: float | None) -> "Target":
        return self if scale is None else replace(self, time_scale=_scale(scale))

    def with_profile(self, profile: str | None) -> "Target":
        return self if profile is None else replace(self, profile=_profile(profile))

    def with_setting(self, name: str, value: str) -> "Target":
        return replace(self, extra_settings={**self.extra_settings, name: value})


def builtin_path(key: str) -> Path:
    return Path(str(resources.files("holdfast") / "fixtures" / "targets" / f"{key}.toml"))


def load(path: Path) -> Target:
    if not path.is_file():
        raise TargetError(f"{path}: no such descriptor; `holdfast init SPEC` writes one")
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise TargetError(f"{path}: not valid TOML: {error}") from error
    if found := list(descriptor.problems(data)):
        raise TargetError("\n".join(f"{path}: {problem}" for problem in found))
    try:
        return _read(data, path)
    except (ValueError, CatalogueError) as error:
        raise TargetError(f"{path}: {error}") from error


def _read(data: dict[str, Any], path: Path) -> Target:
    head = data["target"]
    return Target(
        name=head["name"],
        spec=head["spec"],
        version=str(head.get("version", "")),
        profile=_profile(head.get("profile", "wire")),
        time_scale=_scale(float(head.get("time_scale", 1))),
        file=path,
        nodes=tuple(node for entry in data["node"] for node in _nodes(entry)),
        settings={name: _setting(name, value) for name, value in data.get("settings", {}).items()},
        credentials={name: _from_environment(name, value) for name, value in data.get("credentials", {}).items()},
        observe=data.get("observe", {}),
        links=data.get("links", {}),
        harness={"bind": "127.0.0.1", "advertise": "127.0.0.1", **data.get("harness", {})},
        timing_overrides={name: seconds(text) for name, text in data.get("timings", {}).items()},
        limit_overrides=data.get("limits", {}),
        scaled_limits=data.get("scaled", {}).get("limits", {}),
        dialect=data.get("dialect", {}),
        known_failures=tuple(_known(key, entry) for key, entry in data.get("known_failures", {}).items()),
    )


def _profile(profile: str) -> str:
    if profile not in PROFILES:
        raise TargetError(f"[target] profile: {profile!r} is none of {', '.join(PROFILES)}")
    return profile


def _scale(scale: float) -> float:
    if not 0 < scale <= 1:
        raise TargetError(f"[target] time_scale: {scale:g} is not above 0 and at most 1")
    return scale


def _nodes(entry: dict[str, Any]) -> list[NodeSpec]:
    names = entry.get("names") or [entry.get("name", "a")]
    hooks: dict[str, str] = {hook: entry[hook] for hook in _HOOKS if hook in entry}
    return [
        NodeSpec(
            name=name,
            role=entry.get("role", "node"),
            urls=entry["urls"],
            start=_start(entry.get("start")),
            env={key: str(value) for key, value in entry.get("env", {}).items()},
            ready=entry.get("ready", "/health"),
            hooks=hooks,
            ready_as=entry.get("ready_as", ""),
        )
        for name in names
    ]


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


def _setting(name: str, value: Any) -> Setting:
    keys = value.keys() if isinstance(value, dict) else set()
    if not keys & {"env", "flag"} or keys - {"env", "flag", "default"}:
        raise ValueError(f'[settings] {name}: write {{ env = "VARIABLE" }} or {{ flag = "--option" }}, and a default')
    return Setting(**value)


def _from_environment(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("env:"):
        return value
    variable = value.removeprefix("env:")
    if variable not in os.environ:
        raise ValueError(f"[credentials] {name}: the environment variable {variable} is not set")
    return os.environ[variable]


def _known(key: str, entry: Any) -> KnownFailure:
    if not isinstance(entry, dict) or not entry.get("reason"):
        raise ValueError(f'[known_failures] {key}: write {{ reason = "…", expires = 2027-01-31 }}')
    row, _, part = key.partition("#")
    return KnownFailure(row, int(part) if part else None, entry["reason"], entry.get("link", ""), entry.get("expires"))
