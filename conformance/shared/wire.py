"""Requests and answers over HTTP with JSON bodies, pure: no sockets here, so load users share it.

A spec's own `wire` adds what its answers mean: properties of an `Answer` by the names of its contract, and the legal
answers of its table (`Legal`, see `holdfast.check.finding`). It has to say itself what makes an answer `late`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.check.timeline import Moment
from holdfast.check.transcript import shortened

# Characters of a body that a line about an answer shows.
SHOWN = 400


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> str:
        query = "?" + "&".join(f"{name}={value}" for name, value in self.query.items()) if self.query else ""
        marks = [f"[{name}: {value}]" for name, value in self.headers.items()]
        said = [f"{name}={as_said(value)}" for name, value in self.body.items()] if isinstance(self.body, dict) else []
        return f"{self.method} {self.path}{query}  {' '.join((*marks, *said))}".rstrip()


@dataclass(frozen=True, repr=False)
class Answer:
    """What came back; status 0 means no answer, and `text` says how it ended."""

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str = ""
    # On our monotonic clock: when the request began to go out, and when the answer was there.
    sent: float = 0.0
    received: float = 0.0
    # The wall clock at arrival, for comparison with times on the wire.
    wall: float = 0.0

    @property
    def fields(self) -> Mapping[str, Any]:
        """The members of a JSON object; none for every other body."""
        return self.body if isinstance(self.body, dict) else {}

    @property
    def answered(self) -> bool:
        return self.status != 0

    @property
    def late(self) -> bool:
        """Whether slowness may explain it; a finding about such an answer is excused on an overloaded machine."""
        return not self.answered

    def __repr__(self) -> str:
        return f"<{self.describe()}>"  # what a failed assertion shows

    def describe(self) -> str:
        return f"{self.status} {shortened(self.text, SHOWN)}" if self.answered else f"no answer ({self.text})"


@dataclass(frozen=True)
class Status:
    """A legal answer by its HTTP status alone."""

    codes: tuple[int, ...]

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.status in self.codes

    def describe(self) -> str:
        return status_words(self.codes)


def status_words(codes: Iterable[int]) -> str:
    """Returns the legal statuses as people write them."""
    return "status " + " or ".join(ranges(sorted(set(codes))))


def as_said(value: Any) -> str:
    """Returns a value of a JSON body for a line of a transcript: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def ranges(codes: Sequence[int]) -> Iterator[str]:
    """Yields the codes as people write them: 4xx for all of a class, 400 to 428 for a long row."""
    start = 0
    for place, code in enumerate(codes):
        if place + 1 < len(codes) and codes[place + 1] == code + 1 and (code + 1) % 100:
            continue
        run, start = codes[start : place + 1], place + 1
        if len(run) == 100:
            yield f"{code // 100}xx"
        elif len(run) > 3:
            yield f"{run[0]} to {run[-1]}"
        else:
            yield from map(str, run)


@dataclass(frozen=True)
class NotStatus:
    """A legal answer: any status but this one; the row does not say which."""

    status: int

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.answered and seen.status != self.status

    def describe(self) -> str:
        return f"an answer other than {self.status}"


@dataclass(frozen=True)
class CutOff:
    """A legal answer to what is no proper request: none, because the connection was ended."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and not seen.answered

    def describe(self) -> str:
        return "the connection ended"


def status(*codes: int) -> Status:
    return Status(codes)


def not_status(code: int) -> NotStatus:
    return NotStatus(code)


def cut_off() -> CutOff:
    return CutOff()


def moment(answer: Answer) -> Moment:
    """Returns when the effect of a call happened: after it was sent and before its answer came."""
    return Moment(answer.sent, answer.received)


def parse_body(raw: bytes) -> tuple[Any, str]:
    """Returns a body as JSON, None if it is none, and as text."""
    text = raw.decode(errors="replace")
    try:
        return json.loads(text), text
    except ValueError:
        return None, text
