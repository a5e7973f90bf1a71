"""Latencies in an HDR histogram: every value to a thousandth of itself, from a microsecond to an hour.

Histograms merge exactly: the merged one is the one that would have been recorded in one place. The longest latency is
kept beside it to the microsecond, because a budget for every single attempt is decided by it alone.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Self

from hdrh.histogram import HdrHistogram

_LOWEST, _HIGHEST, _DIGITS = 1, 3_600_000_000, 3
_SECOND = 1_000_000
QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


class Latencies:
    """Durations in seconds; whatever is longer than an hour counts as an hour."""

    def __init__(self) -> None:
        self._counts: Any = HdrHistogram(_LOWEST, _HIGHEST, _DIGITS)
        self.longest = 0.0

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self:
        made = cls()
        for each in seconds:
            made.record(each)
        return made

    @classmethod
    def merged(cls, texts: Iterable[tuple[str, float]]) -> Self:
        """Returns the sum of what `packed` returned, in whatever order."""
        made = cls()
        for text, longest in texts:
            made._counts.add(HdrHistogram.decode(text.encode()))
            made.longest = max(made.longest, longest)
        return made

    def record(self, seconds: float) -> None:
        self._counts.record_value(min(max(round(seconds * _SECOND), _LOWEST), _HIGHEST))
        self.longest = max(self.longest, seconds)

    def packed(self) -> tuple[str, float]:
        """Returns it as text, for a message to the master or a line of a file, and the longest value."""
        return self._counts.encode().decode(), self.longest

    def __len__(self) -> int:
        return int(self._counts.get_total_count())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Latencies) and list(self.counts()) == list(other.counts())

    __hash__ = None  # type: ignore[assignment]  # it changes while it records

    def counts(self) -> Iterator[tuple[float, int]]:
        """Yields each recorded value in seconds, as it was rounded, and how often it was recorded."""
        for item in self._counts.get_recorded_iterator():
            yield item.value_iterated_to / _SECOND, item.count_at_value_iterated_to

    def at(self, quantile: float) -> float:
        """Returns the latency that this share of all did not exceed; 1 is the longest, exactly. 0 if there is none."""
        if quantile >= 1 or not len(self):
            return self.longest
        return min(float(self._counts.get_value_at_percentile(100 * quantile)) / _SECOND, self.longest)

    def above(self, seconds: float) -> int:
        """Returns how many took longer than this, to a thousandth of it."""
        return sum(count for value, count in self.counts() if value > seconds * 1.0005)

    def summary(self) -> dict[str, float]:
        named = {f"p{100 * quantile:g}".replace(".", "_"): self.at(quantile) for quantile in QUANTILES}
        return {**{name: round(value, 6) for name, value in named.items()}, "max": round(self.longest, 6)}
