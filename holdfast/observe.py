"""Where else to look than on the wire: Prometheus metrics and JSON event lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Metrics:
    """One scrape. Samples are summed over labels that the question does not name."""

    samples: tuple[tuple[str, dict[str, str], float], ...]
    types: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> "Metrics":
        samples, types = [], {}
        for family in text_string_to_metric_families(text):
            types[family.name] = family.type
            samples += [(sample.name, dict(sample.labels), float(sample.value)) for sample in family.samples]
        return cls(tuple(samples), types)

    def total(self, name: str, **labels: str) -> float:
        return sum(value for sample, its, value in self.samples if sample == name and labels.items() <= its.items())

    def has(self, name: str) -> bool:
        return any(sample == name for sample, _, _ in self.samples)

    def label_values(self, name: str, label: str) -> set[str]:
        return {its[label] for sample, its, _ in self.samples if sample == name and label in its}

    def series(self, name: str, label: str) -> dict[str, float]:
        """Totals of one family by the values of one label."""
        return {value: self.total(name, **{label: value}) for value in self.label_values(name, label)}


class EventLog:
    """Event records of a growing log, each line parsed once and found by its ids without a walk through all."""

    INDEXED = ("characterId", "sessionId", "attemptId", "instanceId", "userId")

    def __init__(self) -> None:
        self._taken = 0
        self._records: list[dict[str, Any]] = []
        self._by_id: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def find(self, lines: Sequence[str], **wanted: Any) -> list[dict[str, Any]]:
        """Records of the log so far with these field values."""
        for record in json_lines(lines[self._taken :]):
            self._records.append(record)
            for name in self.INDEXED:
                if isinstance(value := record.get(name), str):
                    self._by_id.setdefault((name, value), []).append(record)
        self._taken = len(lines)
        ids = [(name, wanted[name]) for name in self.INDEXED if isinstance(wanted.get(name), str)]
        candidates = min((self._by_id.get(id_, []) for id_ in ids), key=len) if ids else self._records
        return [record for record in candidates if all(record.get(key) == value for key, value in wanted.items())]


def json_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The lines that are JSON objects; a node may write other things too."""
    for line in lines:
        if not line.startswith("{"):
            continue
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
