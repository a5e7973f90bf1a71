"""Entries of [known_failures]: failures that the operator knows of, each with a reason and, at best, an expiry."""

import datetime as dt
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KnownFailure:
    """A row, or one part of it, that the operator expects to fail, with the reason; past `expires` it counts again."""

    id: str
    part: int | None
    reason: str
    link: str
    expires: dt.date | None

    def expired(self, today: dt.date) -> bool:
        return self.expires is not None and self.expires < today


def read_known_failure(key: str, entry: Any) -> KnownFailure:
    if not isinstance(entry, dict) or not entry.get("reason"):
        raise ValueError(f'[known_failures] {key}: write {{ reason = "…", expires = 2027-01-31 }}')
    row, _, part = key.partition("#")
    return KnownFailure(row, int(part) if part else None, entry["reason"], entry.get("link", ""), entry.get("expires"))
