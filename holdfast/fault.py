"""One fault: what, on whom, from when to when, and the receipts that prove that it was really there.

Subjects are `n` (a node's process), `n-redis` (the link between a node and its Redis), `n-client` (a link between our
clients and a node) and `redis` (the store itself).
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

Option = float | str | bool
_NONE: Mapping[str, Option] = MappingProxyType({})


@dataclass(frozen=True)
class Fault:
    kind: str
    subject: str
    options: Mapping[str, Option] = field(default_factory=lambda: _NONE)

    def describe(self) -> str:
        return " ".join([self.kind, self.subject, *(_told(name, value) for name, value in self.options.items())])


def _told(name: str, value: Option) -> str:
    figure = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{name} {figure} s" if name in ("seconds", "jitter") else f"{name} {figure}"


@dataclass(frozen=True)
class Receipt:
    """What a canary saw of a fault, or of its end."""

    seen: str
    proven: bool


class Injected(Protocol):
    """A fault that was put in force."""

    async def proof(self) -> Receipt:
        """What is seen of it; asked while it is in force."""

    async def heal(self) -> Receipt:
        """Take it back; what is seen of that."""


class Storm(Protocol):
    """A drawn schedule of faults, the same whenever it is drawn with the same seed."""

    def lines(self) -> Sequence[str]:
        """One for each step: when, what, on whom, how long."""

    async def run(
        self, inject: Callable[[Fault], Awaitable["Window"]], heal: Callable[["Window"], Awaitable[None]]
    ) -> None:
        """To its end, with everything healed."""


@dataclass(frozen=True)
class Strength:
    """How hard a drawn storm may strike, in the spec's seconds.

    `apart`: either links are struck, or one node, again and again. Nodes that keep in memory what they voted for forget
    it by a kill, and to those that were cut off at that time nobody can tell.
    """

    strikes: int = 4
    longest: float | None = None  # of the storm a third, if not said
    rest: float = 1.0  # between two strikes on one subject
    apart: bool = False


class FaultPlane(Protocol):
    """Puts faults on one deployment."""

    async def inject(self, fault: Fault) -> Injected: ...

    def storm(self, seed: int, seconds: float, scale: float, strength: Strength) -> Storm:
        """Faults drawn with this seed over so many of the spec's seconds."""

    async def client_url(self, node: str) -> str:
        """A URL of this node that leads through the link `<node>-client`."""


@dataclass
class Window:
    """When a fault was in force, from the moment that it was asked for; the report shades it."""

    fault: Fault
    asked: float
    in_force: float = 0.0
    healing: float = 0.0
    healed: float = 0.0
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        return bool(self.receipts) and all(receipt.proven for receipt in self.receipts)

    def fields(self, start: float) -> dict[str, Any]:
        ended = self.healed or time.monotonic()
        return {
            "fault": self.fault.kind,
            "subject": self.fault.subject,
            "text": self.fault.describe(),
            "asked_s": round(self.asked - start, 3),
            "in_force_s": round(self.in_force - start, 3),
            "healed_s": round(ended - start, 3),
            "receipts": [{"seen": receipt.seen, "proven": receipt.proven} for receipt in self.receipts],
            "proven": self.proven,
        }
