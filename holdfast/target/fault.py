"""One fault: its kind, its subject, when it was in force, and the receipts that prove that it really was.

Subjects are `n` (a node's process), `redis` (the store itself), and links: `n-redis` (between a node and its Redis),
`n-sentinel1` (its first Sentinel), `n-m` (the link on which node n calls node m), `n-stub.gc` (a stub of the harness)
and `n-client` (between our clients and a node). Those that lead to a node may name one of its URLs: `n-m.grpc`,
`n-client.quic`; without a name it is the first one.

The room `chaos` implements `FaultPlane`; checks use it through `holdfast.check.faults`. A fault goes through four
moments, in this order: `asked`, `in_force` (the plane has put it on), `healing` and `healed`. Its effects may show from
`asked` on and until `healed`; between `in_force` and `healing` it was there for certain, if its receipts say so. A
receipt is what a canary saw: a connection or request of our own that crosses the same link or meets the same process,
sent apart from the target's traffic. `proven` is false where the canary saw no difference.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

Option = float | str | bool
_NONE: Mapping[str, Option] = MappingProxyType({})


@dataclass(frozen=True)
class Fault:
    kind: str
    subject: str
    options: Mapping[str, Option] = field(default_factory=lambda: _NONE)

    def describe(self) -> str:
        return " ".join([self.kind, self.subject, *(_option(name, value) for name, value in self.options.items())])


def _option(name: str, value: Option) -> str:
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
        """Returns what is seen of it; called while it is in force."""

    async def heal(self) -> Receipt:
        """Removes it; returns what is seen of its end."""


class Storm(Protocol):
    """A drawn schedule of faults, the same whenever it is drawn with the same seed."""

    def lines(self) -> Sequence[str]:
        """Returns one line for each step: when, which fault, on what subject, how long."""

    def text(self) -> str:
        """Returns the schedule as the file that repeats it, in the spec's time."""

    async def run(
        self, inject: Callable[[Fault], Awaitable["Window"]], heal: Callable[["Window"], Awaitable[None]]
    ) -> None:
        """Runs the schedule to its end; everything is healed then."""


@dataclass(frozen=True)
class Strength:
    """Limits of a drawn storm; times are in the spec's seconds.

    With `apart` a storm strikes either links or one node's process, never both. A node that keeps its votes in memory
    loses them when it is killed, and peers that were cut off at that time can't restore them; a spec that allows this
    loss is not violated by what follows.
    """

    strikes: int = 4
    longest: float | None = None  # of one strike; a third of the storm if None
    rest: float = 1.0  # between two strikes on one subject
    apart: bool = False


class FaultPlane(Protocol):
    """Puts faults on one deployment."""

    async def inject(self, fault: Fault) -> Injected: ...

    def storm(self, seed: int, seconds: float, scale: float, strength: Strength) -> Storm:
        """Returns faults drawn with this seed over this many of the spec's seconds."""

    async def client_url(self, node: str, url: str = "") -> str:
        """Returns a URL of this node that leads through the link `<node>-client`, or `<node>-client.<url>`."""


@dataclass
class Window:
    """When a fault was asked for, in force and healed, with its receipts; the report shades this time."""

    fault: Fault
    asked: float
    in_force: float = 0.0
    healing: float = 0.0
    healed: float = 0.0
    receipts: list[Receipt] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        return bool(self.receipts) and all(receipt.proven for receipt in self.receipts)
