"""Computes the lines of a campaign's plots; the template draws them as SVG with attributes alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.reports.text import Json

WIDTH, HEIGHT = 640.0, 180.0
# Latencies below this are drawn on the axis.
_LEAST = 1e-4


@dataclass(frozen=True)
class Line:
    """A line through these points (SVG), with its name and the number of its colour."""

    name: str
    points: str
    colour: int


@dataclass(frozen=True)
class Mark:
    """A value of an axis, and where it is."""

    at: float
    text: str


@dataclass(frozen=True)
class Band:
    """The time of a fault."""

    left: float
    width: float
    text: str


@dataclass(frozen=True)
class Plot:
    title: str
    lines: list[Line]
    across: list[Mark]
    up: list[Mark]
    bands: list[Band]


def plots(campaign: Json) -> list[Plot]:
    """Returns latency over time, the percentile curve, arrivals against completions, and outcomes over time."""
    if not campaign["series"]:
        return []
    return [_over_time(campaign), _curve(campaign), _arrivals(campaign), _outcomes(campaign)]


def _over_time(campaign: Json) -> Plot:
    """Latency by second, on a logarithmic axis."""
    series = campaign["series"]
    wanted = [(name, quantile) for name in campaign["operations"] for quantile in ("p50", "p99")]
    values = {
        (name, quantile): [
            (each["second"], each["operations"][name][quantile]) for each in series if name in each["operations"]
        ]
        for name, quantile in wanted
    }
    scale = _Log([value for line in values.values() for _, value in line])
    lines = [
        Line(f"{name} {quantile.upper()}", _points((_across(campaign, s), scale.at(v)) for s, v in line), number)
        for number, ((name, quantile), line) in enumerate(values.items())
    ]
    return Plot(
        "Latency over time, from when each request was due", lines, _seconds(campaign), scale.marks(), _bands(campaign)
    )


def _curve(campaign: Json) -> Plot:
    """Latency by percentile, both axes logarithmic: 90, 99 and 99.9 % are equally far apart."""
    curves = {name: operation["curve"] for name, operation in campaign["operations"].items()}
    scale = _Log([value for curve in curves.values() for _, value in curve])
    lines = [
        Line(name, _points((_rank(quantile), scale.at(value)) for quantile, value in curve), number)
        for number, (name, curve) in enumerate(curves.items())
    ]
    across = [Mark(_rank(each), f"{100 * each:g} %") for each in (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)]
    return Plot("Latency by percentile", lines, across, scale.marks(), [])


def _arrivals(campaign: Json) -> Plot:
    series = campaign["series"]
    asked = [(each["second"], each["asked"]) for each in series]
    ended = [(each["second"], each["ended"]) for each in series]
    top = max([value for _, value in asked + ended] + [1.0])
    lines = [
        Line(name, _points((_across(campaign, s), _up(v, top)) for s, v in values), number)
        for number, (name, values) in enumerate((("asked for", asked), ("ended", ended)))
    ]
    return Plot("Arrivals and completions a second", lines, _seconds(campaign), _counts(top), _bands(campaign))


def _outcomes(campaign: Json) -> Plot:
    series = campaign["series"]
    names = dict.fromkeys(
        f"{name}: {outcome}" for name, each in campaign["operations"].items() for outcome in each["outcomes"]
    )
    values = {label: [(each["second"], _outcome(each, label)) for each in series] for label in names}
    top = max([value for line in values.values() for _, value in line] + [1.0])
    lines = [
        Line(label, _points((_across(campaign, s), _up(v, top)) for s, v in line), number)
        for number, (label, line) in enumerate(values.items())
    ]
    return Plot("Outcomes a second", lines, _seconds(campaign), _counts(top), _bands(campaign))


def _outcome(second: Json, label: str) -> float:
    name, _, outcome = label.partition(": ")
    return float(second["operations"].get(name, {}).get("outcomes", {}).get(outcome, 0))


class _Log:
    """A logarithmic axis of seconds over all these values."""

    def __init__(self, values: Sequence[float]) -> None:
        seen = [max(value, _LEAST) for value in values] or [_LEAST]
        self._low = math.floor(math.log10(min(seen)))
        self._high = max(math.ceil(math.log10(max(seen))), self._low + 1)

    def at(self, value: float) -> float:
        share = (math.log10(max(value, _LEAST)) - self._low) / (self._high - self._low)
        return HEIGHT * (1 - min(max(share, 0.0), 1.0))

    def marks(self) -> list[Mark]:
        return [Mark(self.at(10.0**power), _duration(10.0**power)) for power in range(self._low, self._high + 1)]


def _duration(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


def _rank(quantile: float) -> float:
    """Returns the place of a quantile on an axis that ends at 99.99 %."""
    return WIDTH * min(-math.log10(max(1 - quantile, 1e-4)), 4.0) / 4.0


def _span(campaign: Json) -> float:
    return float(max(len(campaign["series"]), 1))


def _across(campaign: Json, second: float) -> float:
    return WIDTH * (second + 0.5) / _span(campaign)


def _up(value: float, top: float) -> float:
    return HEIGHT * (1 - value / top)


def _seconds(campaign: Json) -> list[Mark]:
    span = _span(campaign)
    return [Mark(WIDTH * share, f"{span * share:.0f} s") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def _counts(top: float) -> list[Mark]:
    return [Mark(_up(top * share, top), f"{top * share:.0f}") for share in (0.0, 0.5, 1.0)]


def _bands(campaign: Json) -> list[Band]:
    scale = WIDTH / _span(campaign)
    return [
        Band(scale * max(each["asked"], 0.0), max(scale * (each["healed"] - each["asked"]), 1.0), each["fault"])
        for each in campaign["faults"]
    ]


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)
