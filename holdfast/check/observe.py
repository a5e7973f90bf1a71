"""Reads what a target shows beside the wire: Prometheus metrics and JSON event lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Metrics:
    """One scrape of a metrics endpoint."""

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
        """Returns the sum of all samples of this name that have these labels, whatever other labels they have."""
        return sum(value for sample, its, value in self.samples if sample == name and labels.items() <= its.items())

    def has(self, name: str) -> bool:
        return any(sample == name for sample, _, _ in self.samples)

    def label_values(self, name: str, label: str) -> set[str]:
        return {its[label] for sample, its, _ in self.samples if sample == name and label in its}

    def series(self, name: str, label: str) -> dict[str, float]:
        """Returns the totals of one name by the values of one label."""
        return {value: self.total(name, **{label: value}) for value in self.label_values(name, label)}


class EventLog:
    """Event records of a growing log. Each line is parsed once; a field that was asked for is indexed from then on.

    Hundreds of checks share one log and each asks for its own ids, so walking through all records for each question
    would grow with the square of the run.
    """

    def __init__(self) -> None:
        self._taken = 0
        self._records: list[dict[str, Any]] = []
        self._indexes: dict[str, dict[str, list[dict[str, Any]]]] = {}

    def find(self, lines: Sequence[str], **wanted: Any) -> list[dict[str, Any]]:
        """Returns the records with these field values. `lines` is the whole log; only its new lines are parsed."""
        for record in json_lines(lines[self._taken :]):
            self._records.append(record)
            for name, index in self._indexes.items():
                _add(index, record, name)
        self._taken = len(lines)
        texts = {name: value for name, value in wanted.items() if isinstance(value, str)}
        found = [self._index(name).get(value, []) for name, value in texts.items()]
        candidates = min(found, key=len, default=self._records)
        return [record for record in candidates if all(record.get(key) == value for key, value in wanted.items())]

    def _index(self, name: str) -> dict[str, list[dict[str, Any]]]:
        if name not in self._indexes:
            self._indexes[name] = {}
            for record in self._records:
                _add(self._indexes[name], record, name)
        return self._indexes[name]


def _add(index: dict[str, list[dict[str, Any]]], record: dict[str, Any], name: str) -> None:
    if isinstance(value := record.get(name), str):
        index.setdefault(value, []).append(record)


def json_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yields the lines that are JSON objects; a node may write other lines too."""
    for line in lines:
        if not line.startswith("{"):
            continue
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
