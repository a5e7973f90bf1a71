"""The pages of this repository as data: their fenced blocks, commands, and the files that they name."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
# What people fill in, in inline code: `holdfast run [SPEC…]`.
_PLACEHOLDER = re.compile(r"\[?[A-Z]+…?\]?|ID/n|…")


@dataclass(frozen=True)
class Command:
    page: str
    words: tuple[str, ...]
    in_background: bool = False

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md"), *ROOT.glob("docs/**/*.md")])


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fenced(page: Path, kind: str) -> list[str]:
    return [body for each, body in _FENCE.findall(page.read_text()) if each == kind]


def fenced_below(page: Path, heading: str, kind: str) -> list[str]:
    """The fenced blocks of one section of a page."""
    section = page.read_text().split(f"\n{heading}\n", 1)[1].split("\n## ", 1)[0]
    return [body for each, body in _FENCE.findall(section) if each == kind]


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def inline(page: Path) -> list[str]:
    return _INLINE.findall(prose(page))


def commands_of(page: Path) -> Iterator[Command]:
    """The commands of its console blocks: lines that begin with `$ `, without comments, taken apart at `&&`."""
    for body in fenced(page, "console"):
        for line in body.splitlines():
            if not line.startswith("$ "):
                continue
            for part in line.removeprefix("$ ").split(" && "):
                words = shlex.split(part, comments=True)
                yield Command(name(page), tuple(word for word in words if word != "&"), words[-1:] == ["&"])


def all_commands() -> list[Command]:
    return [command for page in pages() for command in commands_of(page)]


def spoken() -> Iterator[Command]:
    """Commands in the middle of a sentence."""
    for page in pages():
        for code in inline(page):
            words = tuple(word for word in code.split() if not _PLACEHOLDER.fullmatch(word))
            if words[:1] in (("holdfast",), ("tox",), ("pytest",), ("pip",), ("pre-commit",)):
                yield Command(name(page), words)
