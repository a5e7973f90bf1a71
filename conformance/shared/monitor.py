"""Commands that Redis ran, as MONITOR shows them: who sent them, which belong together, which change a key."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

_MONITORED = re.compile(r"[\d.]+ \[\d+ (?P<client>\S+)\] (?P<words>.*)", re.DOTALL)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_INSIDE_A_SCRIPT = "lua"


@dataclass(frozen=True)
class Command:
    """One command as MONITOR shows it: the client that sent it, and its words without quotes."""

    client: str
    words: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> Self:
        if (found := _MONITORED.match(line)) is None:
            return cls("", (line,))
        words = (word.replace('\\"', '"').replace("\\\\", "\\") for word in _WORD.findall(found["words"]))
        return cls(found["client"], tuple(words))

    @property
    def name(self) -> str:
        return self.words[0].lower()

    @property
    def in_script(self) -> bool:
        return self.client == _INSIDE_A_SCRIPT

    def mentions(self, text: str) -> bool:
        return any(text in word for word in self.words[1:])

    def names(self, *keys: str) -> bool:
        """Whether one of its words is one of these keys."""
        return any(word in keys for word in self.words[1:])

    def describe(self) -> str:
        return " ".join(self.words)


class Monitor:
    """The commands that Redis runs, as they come."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    async def next(self) -> str:
        """Waits for the next command and returns it as one text."""
        command = await self._raw.next_command()
        return str(command["command"])


def atomic_groups(commands: Iterable[Command]) -> list[list[Command]]:
    """Groups commands that ran with nothing in between: a script with its calls, a transaction, or one command."""
    groups: list[list[Command]] = []
    transactions: dict[str, list[Command]] = {}
    for command in commands:
        if not groups or not (command.in_script or command.client in transactions):
            groups.append([])
        # Redis shows the commands of a transaction when EXEC runs them; other clients may come between MULTI and EXEC.
        group = transactions.get(command.client, groups[-1])
        group.append(command)
        if command.name == "multi":
            transactions[command.client] = group
        elif command.name in {"exec", "discard"}:
            transactions.pop(command.client, None)
    return groups


def changes(commands: Iterable[Command], writes: frozenset[str], *keys: str) -> list[list[Command]]:
    """Returns the commands that write one of these keys, of whatever type, grouped by what ran as one step.

    Steps that write none of them are left out. `writes` are the commands that change data (`Keys.write_commands`).
    """
    groups = (
        [each for each in group if each.name in writes and each.names(*keys)] for group in atomic_groups(commands)
    )
    return [group for group in groups if group]


def members_after(members: Iterable[str], group: Sequence[Command]) -> set[str]:
    """Returns the members of a set after these commands on its key. Sampling may miss a gap that they show."""
    now = set(members)
    for command in group:
        match command.name, *command.words[1:]:
            case "sadd", _, *added:
                now.update(added)
            case "srem", _, *removed:
                now.difference_update(removed)
            case "del" | "unlink", *_:
                now.clear()
    return now
