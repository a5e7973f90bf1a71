"""What went over the wire during one check, with relative milliseconds and with secrets under stable aliases."""

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# Anything long enough to be a credential; each candidate is looked up among the registered secrets.
_CANDIDATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~+/=-]{7,}")


class Secrets:
    """Values that must not be shown, each under an alias that stays the same, so that a rotation can be followed."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._lengths: set[int] = set()

    def register(self, value: str, label: str = "token") -> str:
        if len(value) < 8:
            return value
        if value not in self._aliases:
            self._counts[label] = self._counts.get(label, 0) + 1
            self._aliases[value] = f"{label}#{self._counts[label]}"
            self._lengths.add(len(value))
        return self._aliases[value]

    def redact(self, text: str) -> str:
        return _CANDIDATE.sub(self._replacement, text)

    def values(self) -> list[str]:
        return list(self._aliases)

    def _replacement(self, match: re.Match[str]) -> str:
        word = match[0]
        # Slice by slice, for a secret inside a longer run (`hf1.x.y/ws`, `token=…`): asking every secret about every
        # word would hold the loop for seconds once a check has thousands of them.
        for length in sorted(self._lengths, reverse=True):
            word = self._with_aliases(word, length)
        return word

    def _with_aliases(self, word: str, length: int) -> str:
        at = 0
        while at + length <= len(word):
            alias = self._aliases.get(word[at : at + length])
            if alias:
                word = word[:at] + alias + word[at + length :]
            at += len(alias) if alias else 1
        return word


# A text, or what gives it when it is asked for: of a thousand exchanges most are never shown.
Words = str | Callable[[], str]


@dataclass(frozen=True)
class Line:
    at: float
    direction: str
    words: Words

    def text(self) -> str:
        return self.words if isinstance(self.words, str) else self.words()


@dataclass
class Transcript:
    """The first and the last lines are kept; a thousand polls in the middle are counted, not stored."""

    secrets: Secrets
    head: int = 150
    tail: int = 250
    started: float = field(default_factory=time.monotonic)
    dropped: int = 0

    def __post_init__(self) -> None:
        self._first: list[Line] = []
        self._last: deque[Line] = deque(maxlen=self.tail)

    def sent(self, words: Words) -> None:
        self.add("→", words)

    def received(self, words: Words) -> None:
        self.add("←", words)

    def note(self, words: Words) -> None:
        self.add("·", words)

    def add(self, direction: str, words: Words) -> None:
        line = Line(time.monotonic() - self.started, direction, words)
        if len(self._first) < self.head:
            self._first.append(line)
            return
        self.dropped += len(self._last) == self.tail
        self._last.append(line)

    def lines(self) -> list[dict[str, Any]]:
        """Redacted here, at the end: a secret first seen in a reply also hides in the request lines before it."""
        return [
            {"t": round(line.at * 1000, 1), "dir": line.direction, "text": self.secrets.redact(line.text())}
            for line in (*self._first, *self._last)
        ]
