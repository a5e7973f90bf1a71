"""Keeps what went over the wire during one check, with relative milliseconds, and hides secrets behind aliases.

Three things are postponed until the transcript is read, because of a thousand lines most are never shown. The text of
a line may be a function. Lines are shortened when they are read. And secrets are replaced when they are read: a token
that first appears in a reply is also hidden in the request lines that came before it.

Secrets are registered by the driver that receives them. Each gets an alias such as `token#1` that stays the same for
the whole check, so that a reader can follow a rotation. Replacing looks up words, not secrets: the text is cut into
runs of characters that a credential may consist of, and each place of a run is looked up by its first eight characters.
So the cost does not grow with the number of secrets, of which a check may have thousands. A text that is to be shown
must be shortened by `shortened`, which never cuts such a run: half a secret would not be recognised.
"""

import re
import string
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.check.evidence import TranscriptLine

_SHORTEST = 8
# Any run of characters that is long enough to be, or to contain, a credential.
_CANDIDATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~+/=-]{7,}")
_OF_A_CANDIDATE = string.ascii_letters + string.digits + "._~+/=-"
_LONGEST_LINE = 4000
# Directions of lines that the target has a part in: sent to it, received from it, received by a peer that we play.
_EXCHANGES = frozenset("→←⇢")


def shortened(text: str, longest: int) -> str:
    """Returns the beginning of a text that is longer than `longest` characters, and says how much is missing.

    Cuts between words only: half a secret would no longer be recognised as one.
    """
    if len(text) <= longest:
        return text
    kept = text[:longest].rstrip(_OF_A_CANDIDATE)
    return f"{kept}… and {len(text) - len(kept)} more characters"


class Secrets:
    """Values that must not be shown, each with an alias that stays the same."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        # Of each beginning of a secret, the lengths of the secrets that begin so, longest first.
        self._lengths: dict[str, list[int]] = {}
        self._seen: dict[str, str] = {}

    def register(self, value: str, label: str = "token") -> str:
        """Returns the alias under which the value is shown from now on; the value itself if it is too short to hide."""
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
        """Returns the text with every registered secret replaced by its alias."""
        return _CANDIDATE.sub(self._replacement, text)

    def values(self) -> list[str]:
        return list(self._aliases)

    def _replacement(self, match: re.Match[str]) -> str:
        word = match[0]
        if word not in self._seen:  # the same ids occur in line after line
            self._seen[word] = self._with_aliases(word)
        return self._seen[word]

    def _with_aliases(self, word: str) -> str:
        """Replaces secrets inside a longer run (`hf1.x.y/ws`, `token=…`), going through it place by place.

        Searching for every secret in every word would hold the loop for seconds once a check has thousands of them.
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


# A text, or a function that returns it.
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
    """Keeps the first `head` and the last `tail` lines; those in between are only counted."""

    secrets: Secrets
    head: int = 150
    tail: int = 250
    started: float = field(default_factory=time.monotonic)
    dropped: int = 0
    # Called for each line that was sent to the target or received from it.
    exchanged: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._first: list[Line] = []
        self._last: deque[Line] = deque(maxlen=self.tail)

    def sent(self, words: Words) -> None:
        self.add("→", words)

    def received(self, words: Words) -> None:
        self.add("←", words)

    def note(self, words: Words) -> None:
        self.add("·", words)

    def add(self, direction: str, words: Words, at: float | None = None) -> None:
        """Adds a line, of now or of an earlier moment that was only learnt of now."""
        if direction in _EXCHANGES:
            self.exchanged()
        line = Line((time.monotonic() if at is None else at) - self.started, direction, words)
        if len(self._first) < self.head:
            self._first.append(line)
            return
        self.dropped += len(self._last) == self.tail
        self._last.append(line)

    def lines(self) -> tuple[TranscriptLine, ...]:
        """Returns the kept lines with secrets replaced; `t` is in milliseconds since the check began."""
        return tuple(
            TranscriptLine(round(line.at * 1000, 1), line.direction, self.secrets.redact(line.text()))
            for line in sorted((*self._first, *self._last), key=lambda line: line.at)
        )
