"""What went over the wire during one check, with relative milliseconds and with secrets under stable aliases."""

import re
import string
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SHORTEST = 8
# Anything long enough to be a credential; each candidate is looked up among the registered secrets.
_CANDIDATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~+/=-]{7,}")
_OF_A_CANDIDATE = string.ascii_letters + string.digits + "._~+/=-"
_LONGEST_LINE = 4000


def shortened(text: str, longest: int) -> str:
    """People read it: of a body of ten megabytes the beginning says enough.

    No word is cut in two: it might be half a secret, which would no longer be recognised as one.
    """
    if len(text) <= longest:
        return text
    kept = text[:longest].rstrip(_OF_A_CANDIDATE)
    return f"{kept}… and {len(text) - len(kept)} more characters"


class Secrets:
    """Values that must not be shown, each under an alias that stays the same, so that a rotation can be followed."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        # By its beginning, which is all that is looked up at most places, the lengths that a secret may have.
        self._lengths: dict[str, list[int]] = {}
        self._seen: dict[str, str] = {}

    def register(self, value: str, label: str = "token") -> str:
        if len(value) < _SHORTEST:
            return value
        if value not in self._aliases:
            self._counts[label] = self._counts.get(label, 0) + 1
            self._aliases[value] = f"{label}#{self._counts[label]}"
            lengths = self._lengths.setdefault(value[:_SHORTEST], [])
            lengths.append(len(value))
            lengths.sort(reverse=True)
            self._seen.clear()
        return self._aliases[value]

    def redact(self, text: str) -> str:
        return _CANDIDATE.sub(self._replacement, text)

    def values(self) -> list[str]:
        return list(self._aliases)

    def _replacement(self, match: re.Match[str]) -> str:
        word = match[0]
        if word not in self._seen:  # ids come again in every line
            self._seen[word] = self._with_aliases(word)
        return self._seen[word]

    def _with_aliases(self, word: str) -> str:
        """Place by place, for a secret inside a longer run (`hf1.x.y/ws`, `token=…`).

        Asking every secret about every word would hold the loop for seconds once a check has thousands of them.
        """
        shown, at, done = [], 0, 0
        while at + _SHORTEST <= len(word):
            lengths = self._lengths.get(word[at : at + _SHORTEST], ())
            length = next((each for each in lengths if word[at : at + each] in self._aliases), 0)
            if length:
                shown += [word[done:at], self._aliases[word[at : at + length]]]
                done = at + length
            at += length or 1
        return "".join([*shown, word[done:]])


# A text, or what gives it when it is asked for: of a thousand exchanges most are never shown.
Words = str | Callable[[], str]


@dataclass(frozen=True)
class Line:
    at: float
    direction: str
    words: Words

    def text(self) -> str:
        return shortened(self.words if isinstance(self.words, str) else self.words(), _LONGEST_LINE)


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
