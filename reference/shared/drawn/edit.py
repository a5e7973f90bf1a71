"""One change of one place in a source text, and the diff that shows it."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

CONTEXT = 3
Words = Sequence[Sequence[str]]
"""Enumerations of the spec: each a list of the words that can stand in one another's place."""


@dataclass(frozen=True)
class Edit:
    """Replaces the characters from `start` to `end`. `kind` names the operator, `says` the change for people."""

    start: int
    end: int
    text: str
    kind: str
    says: str

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def line(self, source: str) -> int:
        return source.count("\n", 0, self.start) + 1


def replaced(start: int, old: str, new: str, kind: str) -> Edit:
    """An edit that puts `new` in the place of `old`."""
    return Edit(start, start + len(old), new, kind, f"{old} becomes {new}")


def diff(before: str, after: str, name: str) -> str:
    """Returns the change as a unified diff of the file of this name."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=CONTEXT, lineterm="")
    return "\n".join(lines)


def hunk(text: str) -> tuple[str, ...]:
    """Returns the lines of a diff's only hunk, each with its sign and without indentation."""
    lines = [line for line in text.splitlines() if not line.startswith(("--- ", "+++ ", "@@ "))]
    return tuple(f"{line[:1]} {line[1:].strip()}".rstrip() for line in lines)


def changed(lines: Sequence[str]) -> list[str]:
    """Returns those lines of a hunk that were removed or added."""
    return [line for line in lines if line.startswith(("+", "-"))]


def other_words(word: str, words: Words) -> list[str]:
    """Returns the neighbours of a word in its enumeration; none if it is in no enumeration."""
    for enumeration in words:
        if word in enumeration and len(enumeration) > 1:
            place = list(enumeration).index(word)
            near = (enumeration[(place + 1) % len(enumeration)], enumeration[place - 1])
            return [each for each in dict.fromkeys(near) if each != word]
    return []


def other_numbers(value: float) -> list[float]:
    """Returns the numbers that take the place of this one: one more, one less, twice as much, none."""
    return [each for each in dict.fromkeys((value + 1, value - 1, value * 2, 0)) if each != value]
