"""What the tap on the links to Redis has noted, as checks ask for it.

The room `chaos` notes what passes (`holdfast.chaos.tap`), the room `fixtures` reads the notes, and checks ask through
`holdfast.check.tap`. Times are those of `time.monotonic()`, which all processes of a machine share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Command:
    """One command as Redis got it from a node, with the reply that the node got, if it did."""

    node: str
    at: float
    connection: int
    number: int
    words: tuple[Any, ...]
    transaction: int | None = None
    script: str = ""
    reply: Any = None
    replied_at: float | None = None

    @property
    def name(self) -> str:
        return str(self.words[0]).upper()

    def describe(self) -> str:
        return " ".join(str(word) for word in self.words)


@dataclass(frozen=True)
class Pushed:
    """A message that a node got unasked: of a subscription, or of RESP 3."""

    node: str
    at: float
    connection: int
    words: tuple[Any, ...]


class TapLog(Protocol):
    """The notes of one deployment; each question reads what has come since the last."""

    def commands(self) -> Sequence[Command]:
        """All commands so far, in the order in which they passed."""

    def pushes(self) -> Sequence[Pushed]: ...

    def unreadable(self) -> Sequence[str]:
        """Connections that could not be read, with the reason: their commands are not known."""

    def scripts(self) -> Mapping[str, str]:
        """The beginnings of the scripts that were loaded or run by their text, by SHA-1."""

    async def bypasses(self) -> Sequence[str]:
        """Clients of the Redis that did not come through the tap and are not ours; empty proves that none did."""
