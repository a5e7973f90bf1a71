"""When each request is due: an open model, in which no answer, however late, delays the next request.

A shape is a rate over time, made of straight pieces; constant, ramp, steps and spike are all of them. The k-th arrival
is due where the area under the rate reaches k (evenly spaced), or the k-th point of a Poisson process of rate 1.
Both depend on nothing but the shape and the seed, so the whole list is known before the first request leaves. Workers
take every n-th entry of the same list: the campaign is the same one, however many of them there are.
"""

import bisect
import itertools
import math
import random
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KEYS: dict[str, frozenset[str]] = {
    "constant": frozenset({"rate", "seconds"}),
    "ramp": frozenset({"from", "to", "seconds"}),
    "steps": frozenset({"rates", "seconds"}),
    "spike": frozenset({"rate", "peak", "at", "for", "seconds"}),
    "burst": frozenset({"count", "seconds"}),
    "replayed": frozenset({"at"}),
}


class ArrivalsError(ValueError):
    """Raised for arrivals that make no sense; the text names the key and what it takes."""


@dataclass(frozen=True)
class Shape:
    """A rate over time: (second, requests a second) at each corner, straight in between."""

    corners: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        return self.corners[-1][0]

    def areas(self) -> list[float]:
        """Returns how many requests are due up to each corner."""
        pieces = ((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(self.corners))
        return [0.0, *itertools.accumulate(pieces)]

    def offsets(self, points: Iterable[float]) -> "array[float]":
        """Returns the second at which each of these areas, in ascending order, is reached."""
        areas, found = self.areas(), array("d")
        for point in points:
            if point >= areas[-1]:
                break
            piece = bisect.bisect_right(areas, point) - 1
            found.append(_reached(self.corners[piece], self.corners[piece + 1], point - areas[piece]))
        return found


def _reached(start: tuple[float, float], end: tuple[float, float], area: float) -> float:
    """Returns when the area under the straight line from `start` to `end` reaches this value."""
    (t0, r0), (t1, r1) = start, end
    if area <= 0:
        return t0
    slope = (r1 - r0) / (t1 - t0)
    # The positive root of slope/2 x² + r0 x = area, in the form that stays exact where the slope is (almost) nothing.
    return t0 + 2 * area / (r0 + math.sqrt(r0 * r0 + 2 * slope * area))


@dataclass(frozen=True)
class Arrivals:
    """How requests arrive: by a shape, evenly or as a Poisson process; or at the recorded offsets."""

    shape: Shape | None
    poisson: bool = False
    replayed: tuple[float, ...] = ()

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Arrivals":
        """Reads `{ shape = "constant", rate = 50, seconds = 60 }`, with numbers as they are in this run."""
        given = dict(table)
        kind, poisson = str(given.pop("shape", "constant")), bool(given.pop("poisson", False))
        wanted = _KEYS.get(kind)
        if wanted is None:
            raise ArrivalsError(f"arrivals: no shape {kind!r}; there are {', '.join(_KEYS)}")
        if wrong := given.keys() ^ wanted:
            raise ArrivalsError(
                f"arrivals: {', '.join(sorted(wrong))} missing or unknown; {kind} takes {', '.join(sorted(wanted))}"
            )
        if kind == "replayed":
            return cls(None, replayed=tuple(sorted(map(float, given["at"]))))
        return cls(Shape(tuple(_corners(kind, given))), poisson)

    @property
    def seconds(self) -> float:
        return self.shape.seconds if self.shape else max(self.replayed, default=0.0)

    def due(self, seed: int) -> "array[float]":
        """Returns every due time of the campaign, in seconds since its start."""
        if self.shape is None:
            return array("d", self.replayed)
        if not self.poisson:
            return self.shape.offsets(map(float, itertools.count()))
        draw = random.Random(seed)
        return self.shape.offsets(itertools.accumulate(draw.expovariate(1.0) for _ in itertools.repeat(None)))

    def rate_at(self, second: float) -> float:
        """Returns the rate that is asked for at this second; of replayed arrivals the mean."""
        if self.shape is None:
            return len(self.replayed) / self.seconds if self.seconds else 0.0
        for (t0, r0), (t1, r1) in itertools.pairwise(self.shape.corners):
            if t0 <= second < t1:
                return r0 + (r1 - r0) * (second - t0) / (t1 - t0)
        return 0.0


def _corners(kind: str, given: Mapping[str, Any]) -> Sequence[tuple[float, float]]:
    numbers = [*(given["rates"] if kind == "steps" else ()), *(v for v in given.values() if not isinstance(v, list))]
    if not all(isinstance(v, int | float) and math.isfinite(v) and v >= 0 for v in numbers) or not given["seconds"]:
        raise ArrivalsError(f"arrivals: {dict(given)}: every value is a number, none below 0, and seconds above it")
    seconds = given["seconds"]
    match kind:
        case "burst":
            return _flat([given["count"] / seconds], seconds)
        case "ramp":
            return [(0.0, float(given["from"])), (seconds, float(given["to"]))]
        case "steps":
            return _flat(given["rates"], seconds)
        case "spike":
            return _spike(given, seconds)
    return _flat([given["rate"]], seconds)


def _flat(rates: Sequence[float], seconds: float) -> list[tuple[float, float]]:
    """Returns the corners of equally long steps; two corners at one second make a jump."""
    each = seconds / len(rates)
    pieces = [((at * each, float(rate)), ((at + 1) * each, float(rate))) for at, rate in enumerate(rates)]
    return _joined(pieces)


def _spike(given: Mapping[str, Any], seconds: float) -> list[tuple[float, float]]:
    """Returns a constant rate with a peak: `at` and `for` are shares of the whole time."""
    rate, peak = float(given["rate"]), float(given["peak"])
    first, last = given["at"] * seconds, min(1.0, given["at"] + given["for"]) * seconds
    stretches = [(0.0, first, rate), (first, last, peak), (last, seconds, rate)]
    return _joined([((a, each), (b, each)) for a, b, each in stretches if b > a])


def _joined(pieces: Sequence[tuple[tuple[float, float], tuple[float, float]]]) -> list[tuple[float, float]]:
    """Returns the corners of all pieces; a jump takes a millionth of a second, so that no piece has no length."""
    corners: list[tuple[float, float]] = [pieces[0][0]]
    for (begin, rate), end in pieces:
        if corners[-1] != (begin, rate):
            corners.append((begin + 1e-6, rate))
        corners.append(end)
    return corners


def share(due: Sequence[float], worker: int, workers: int) -> Sequence[tuple[int, float]]:
    """Returns what one of so many workers starts: (number in the whole list, due time)."""
    return [(number, due[number]) for number in range(worker, len(due), workers)]
