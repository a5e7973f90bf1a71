"""A campaign as data: who arrives how fast, what must hold, which faults come, and what a miss means.

`load/campaigns/<key>.toml` has those of a spec. A number is a number. Text is a duration (`5s`), which the time scale
shortens, or a formula over the timings and limits of the catalogue, the campaign's own parameters and `arrivals`, the
number of requests that are due. Rates and latency budgets are never scaled.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from holdfast.load.arrivals import Arrivals, ArrivalsError
from holdfast.load.extra import LoadError
from holdfast.spec.catalogue import CatalogueError, seconds
from holdfast.spec.formula import FormulaError, evaluate
from holdfast.spec.own import nearest
from holdfast.spec.timings import Timings, UnknownTimingError

FOLDER = Path(__file__).parent / "campaigns"
Quantity = float | str
# Keys of arrivals that may be formulas, and seconds as a formula of timings that are scaled already.
QUANTITIES = frozenset({"rate", "seconds", "count"})
# Before, during and after the faults of a campaign; `all` is the whole of it.
Phase = Literal["all", "before", "during", "after"]
R = TypeVar("R")


class CampaignError(LoadError):
    """Raised for a campaign that is not there or can't be read; the text says which and what to do."""


@dataclass(frozen=True)
class Budget:
    """No more than `within` at this quantile of an operation; quantile 1 is every single one.

    `document` tells a promise of the spec, whose miss fails, from a number of ours, whose miss warns.
    """

    of: str
    quantile: float
    within: Quantity
    document: bool = False
    rests_on: str = ""
    phase: Phase = "all"


@dataclass(frozen=True)
class Count:
    """An outcome of an operation comes exactly so often, or in at least or at most this share of all."""

    of: str
    outcome: str
    exactly: Quantity | None = None
    at_least: Quantity | None = None
    at_most: Quantity | None = None
    document: bool = True
    rests_on: str = ""
    # Whether a machine that was too slow may be the cause; then it is not judged if the generator was saturated.
    timely: bool = False


@dataclass(frozen=True)
class Recovery:
    """The time from each fault to the first `outcome` of `of` after it; one fault is one independent trial.

    With `everyone` a trial ends with the last of those `of` that began during the fault, and each must end well.
    Quantile 1 asks nothing but that no trial of this campaign took longer.
    """

    of: str
    outcome: str
    within: Quantity
    quantile: float = 0.95
    document: bool = False
    rests_on: str = ""
    everyone: bool = False


@dataclass(frozen=True)
class Audit:
    """Each record of the event `begins` is followed by exactly one of `ends` that has the same value of `by`."""

    begins: str
    ends: tuple[str, ...]
    by: str
    rests_on: str = ""
    # Only records whose fields are like these patterns count, where they have such a field.
    where: Mapping[str, str] = field(default_factory=dict)
    # Where the ends are, if not in the event logs: the name of a stream of the target's store.
    stream: str = ""


@dataclass(frozen=True)
class PlannedFault:
    """A fault of the fault plane, so long after the start; `times` of them, `every` so often."""

    kind: str
    subject: str
    at: Quantity
    lasts: Quantity
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""
    times: int = 1
    every: Quantity = 0.0
    # Each one comes up to so much later, drawn anew, so that trials do not all meet the same moment of a period.
    spread: Quantity = 0.0

    def at_most(self, times: int) -> "PlannedFault":
        return replace(self, times=min(self.times, times))


@dataclass(frozen=True)
class Campaign:
    id: str
    title: str
    story: str
    user: str
    arrivals: Mapping[str, Any]
    parameters: Mapping[str, Quantity] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
    counts: tuple[Count, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    audits: tuple[Audit, ...] = ()
    rules: tuple[str, ...] = ()
    faults: tuple[PlannedFault, ...] = ()
    in_flight: int = 2000
    headline: bool = False
    # Left out unless it is asked for by name.
    long: bool = False
    # The most seconds of arrivals at a time scale below 1; 0 for no such limit.
    short: float = 0.0
    # How many nodes it wants, of every role or by role; 0 for all that there are.
    nodes: int | Mapping[str, int] = 0
    # Settings of the nodes; a value that is a name is that of an entry of the target's [dialect].
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def judges(self) -> int:
        """How many things it decides."""
        return len(self.budgets) + len(self.counts) + len(self.recoveries) + len(self.rules) + len(self.audits)

    def nodes_of(self, role: str, there: int) -> int:
        """Returns how many nodes of a role it wants, of those that there are."""
        wanted = self.nodes if isinstance(self.nodes, int) else self.nodes.get(role, 0)
        return min(there, wanted or there)

    def settings_for(self, dialect: Mapping[str, Any]) -> dict[str, str]:
        """Returns its settings for a target with this dialect; one that the dialect does not name is left out."""
        given = {
            name: str(dialect.get(value, "")) if value.isidentifier() else value
            for name, value in self.settings.items()
        }
        return {name: value for name, value in given.items() if value}


class Numbers:
    """The quantities of a campaign in one run: text becomes a number by the timings of the target."""

    def __init__(self, campaign: Campaign, timings: Timings, seed: int = 1) -> None:
        self.campaign = campaign
        self._timings = timings
        self.table = self._resolved(campaign.arrivals)
        self.arrivals = Arrivals.of(self.table)
        self.due = self.arrivals.due(seed)

    def _resolved(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Returns arrivals as numbers, with the seconds of this run. A burst keeps its seconds: it is about density."""
        scale = self._timings.scale
        found = {name: self.of(value) if name in QUANTITIES else value for name, value in table.items()}
        if "seconds" in table and not isinstance(table["seconds"], str) and table.get("shape") != "burst":
            found["seconds"] *= scale
            if scale < 1 and self.campaign.short:
                found["seconds"] = min(found["seconds"], self.campaign.short)
        return found

    def of(self, quantity: Quantity) -> float:
        """Returns it as a number. Raises CampaignError."""
        if not isinstance(quantity, str):
            return float(quantity)
        if quantity[:1].isdigit() and quantity[-1:] in "smh":
            return seconds(quantity) * self._timings.scale
        try:
            return evaluate(quantity, self._named)
        except (FormulaError, UnknownTimingError) as error:
            raise CampaignError(f"{self.campaign.id}: {error}") from error

    def latency(self, quantity: Quantity) -> float:
        """Returns a budget: a duration that is written out is never scaled, a timing is what it is in this run."""
        written = isinstance(quantity, str) and quantity[:1].isdigit() and quantity[-1:] in "smh"
        return seconds(str(quantity)) if written else self.of(quantity)

    def parameters(self) -> dict[str, float]:
        return {name: self.of(value) for name, value in self.campaign.parameters.items()}

    def _named(self, name: str) -> float:
        if name == "arrivals":
            return float(len(self.due))
        if name in self.campaign.parameters:
            return self.of(self.campaign.parameters[name])
        return self._timings.evaluate(name)


def campaigns(key: str) -> dict[str, Campaign]:
    """Returns the campaigns of a spec by their ids. Raises CampaignError if it has none."""
    path = FOLDER / f"{key}.toml"
    if not path.is_file():
        there = ", ".join(sorted(each.stem for each in FOLDER.glob("*.toml")))
        raise CampaignError(f"{key} has no load campaigns; there are some for {there}")
    return parse(path.read_text("utf-8"), path.name)


def campaign(key: str, name: str) -> Campaign:
    known = campaigns(key)
    wanted = name.upper()
    if wanted not in known:
        raise CampaignError(f"{key} has no campaign {name}{nearest(wanted, known)}")
    return known[wanted]


def parse(text: str, source: str = "campaigns") -> dict[str, Campaign]:
    """Reads a file of campaigns. Raises CampaignError with the file, the campaign and the key."""
    try:
        tables = tomllib.loads(text).get("campaign", {})
    except tomllib.TOMLDecodeError as error:
        raise CampaignError(f"{source}: {error}") from error
    return {name: _campaign(name, table, f"{source}, campaign {name}") for name, table in tables.items()}


def _campaign(name: str, table: Mapping[str, Any], place: str) -> Campaign:
    lists: dict[str, Any] = {
        "budgets": tuple(_record(Budget, each, f"{place}, budgets") for each in table.get("budgets", ())),
        "counts": tuple(_record(Count, each, f"{place}, counts") for each in table.get("counts", ())),
        "recoveries": tuple(_record(Recovery, each, f"{place}, recoveries") for each in table.get("recoveries", ())),
        "audits": tuple(_record(Audit, each, f"{place}, audits") for each in table.get("audits", ())),
        "faults": tuple(_record(PlannedFault, each, f"{place}, faults") for each in table.get("faults", ())),
        "rules": tuple(table.get("rules", ())),
    }
    made = _record(Campaign, {**table, **lists, "id": name}, place)
    try:
        Arrivals.of({name: 1.0 if name in QUANTITIES else value for name, value in made.arrivals.items()})
    except (ArrivalsError, CatalogueError) as error:
        raise CampaignError(f"{place}: {error}") from error
    if not made.judges:
        raise CampaignError(f"{place}: it judges nothing; give it budgets, counts, recoveries or rules")
    return made


def _record(kind: type[R], table: Mapping[str, Any], place: str) -> R:
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]  # every kind here is a dataclass
    if unknown := sorted(table.keys() - known):
        raise CampaignError(f"{place}: {unknown[0]} is no key{nearest(unknown[0], known)}")
    try:
        return kind(**table)
    except TypeError as error:
        raise CampaignError(f"{place}: {str(error).partition('() ')[2]}") from error
