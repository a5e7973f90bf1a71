"""What the generator is told: one JSON document, the same for every worker, wherever it runs.

It has all that a worker needs to speak to the target: addresses, credentials, timings in real seconds. Files that the
descriptor names are in it as text, because a worker may run on another machine. It holds secrets, so it is written only
into the run's own folder, which nobody else can read and which is removed at the end.
"""

import json
import os
import uuid
from array import array
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from holdfast.load.arrivals import Arrivals
from holdfast.load.campaign import Campaign, Numbers
from holdfast.load.extra import LoadError
from holdfast.spec.timings import Timings
from holdfast.target.descriptor import Target

# Kinds of URL that a generator can speak to, the quickest first.
_KINDS = ("http", "https")
# A request without an answer after this many deadlines and seconds has none.
_PATIENCE, _EXTRA = 1.5, 3.0
# What a target may take for one answer, by the names that catalogues have for it.
_DEADLINES = ("attempt_deadline", "peer_call_timeout", "store_fail_answer")
_MARK = "-----BEGIN"


class PlanError(LoadError):
    """Raised for a target that can't be loaded; the text says what is missing."""


@dataclass(frozen=True)
class Node:
    name: str
    url: str


@dataclass(frozen=True)
class Plan:
    """One campaign against one target."""

    key: str
    campaign: str
    user: str
    arrivals: Mapping[str, Any]
    seconds: float
    seed: int
    in_flight: int
    nodes: tuple[Node, ...]
    credentials: Mapping[str, Any]
    dialect: Mapping[str, Any]
    numbers: Mapping[str, float]
    """The parameters of the campaign, the timings in real seconds and the limits, by name."""
    patience: float
    metrics: str
    run: str
    out: str
    unfit: str = ""
    """Why this campaign can't be made on this target, in a sentence; "" if it can."""

    @classmethod
    def read(cls, text: str) -> Self:
        given = json.loads(text)
        return cls(**{**given, "nodes": tuple(Node(**node) for node in given["nodes"])})

    def text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    def write(self, path: Path) -> None:
        """Writes it to a file that only this user can read."""
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(self.text())

    @property
    def enough(self) -> Path:
        """Returns the file that says, by being there, that no further arrivals are needed."""
        return Path(self.out).with_suffix(".enough")

    def due(self) -> "array[float]":
        return Arrivals.of(self.arrivals).due(self.seed)


def plan_of(
    campaign: Campaign,
    target: Target,
    timings: Timings,
    urls: Mapping[str, Mapping[str, str]],
    out: Path,
    *,
    seed: int = 1,
    fill: Callable[[str, str], str] = lambda text, _node: text,
) -> Plan:
    """Returns the plan of a campaign. `urls` are those of each node, `fill` puts values for placeholders."""
    numbers = Numbers(campaign, timings, seed)
    scaled = {name: scaled.seconds for name, scaled in timings.all().items()}
    return Plan(
        key=target.spec,
        campaign=campaign.id,
        user=campaign.user,
        arrivals=numbers.table,
        seconds=numbers.arrivals.seconds,
        seed=seed,
        in_flight=campaign.in_flight,
        nodes=_nodes(urls),
        credentials=_credentials(target, list(urls), fill),
        dialect=dict(target.dialect),
        numbers={**scaled, **timings.limits(), **numbers.parameters()},
        patience=max(scaled.get(name, 0.0) for name in _DEADLINES) * _PATIENCE + _EXTRA,
        metrics=str(target.observe.get("metrics", "")),
        run=uuid.uuid4().hex[:8],
        out=str(out),
        unfit=_unfit(campaign, target),
    )


def _unfit(campaign: Campaign, target: Target) -> str:
    """Says which setting a campaign gives its nodes by value, where the target is not started with it."""
    given = campaign.settings_for({}).items()
    lacking = [f"{name} {value}" for name, value in given if not (target.startable and name in target.settings)]
    return f"could not arrange it: nodes that are started with {', '.join(lacking)}" if lacking else ""


def _nodes(urls: Mapping[str, Mapping[str, str]]) -> tuple[Node, ...]:
    found = [
        Node(name, mine[kind].rstrip("/"))
        for name, mine in urls.items()
        if (kind := next((each for each in _KINDS if each in mine), ""))
    ]
    if not found:
        raise PlanError("no node has an http or https URL to send requests to; give it one under [[node]] urls")
    return tuple(found)


def _credentials(target: Target, nodes: list[str], fill: Callable[[str, str], str]) -> dict[str, Any]:
    """Returns the credentials with placeholders filled; a file of certificates as its text, one for each node."""
    filled: dict[str, Any] = {}
    for name, value in target.credentials.items():
        if not isinstance(value, str) or name == "bundle_tool":
            filled[name] = value
        elif "{node}" in value:
            filled[name] = {node: _as_text(fill(value, node)) for node in nodes}
        else:
            filled[name] = _as_text(fill(value, nodes[0]))
    return filled


def _as_text(value: str) -> str:
    path = Path(value)
    try:
        text = path.read_text("utf-8") if path.is_absolute() and path.is_file() else ""
    except OSError:
        return value
    return text if _MARK in text else value
