"""What the kernel asks of a standing target. The rooms implement these protocols; checks reach them through drivers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.capability import Capability
from holdfast.fault import FaultPlane
from holdfast.target import Target
from holdfast.timings import Timings


class StartError(RuntimeError):
    """A process did not start, or did not become ready."""


@dataclass(frozen=True)
class LinkCounters:
    bytes_up: int
    bytes_down: int
    chunks_up: int
    chunks_down: int
    opened: int
    open: int
    refused: int


class Link(Protocol):
    """One TCP link that we stand in: between a node and its Redis, or between a client and a node."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    async def delay(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> None: ...

    async def stall(self, direction: str = "both") -> None: ...

    async def refuse(self) -> None: ...

    async def cut(self) -> None: ...

    async def lead_to(self, host: str, port: int) -> None:
        """Connections go there from now on."""

    async def heal(self) -> None: ...

    async def counters(self) -> LinkCounters: ...

    async def close(self) -> None: ...


class Node(Protocol):
    """One process of the target."""

    @property
    def name(self) -> str: ...

    @property
    def urls(self) -> Mapping[str, str]: ...

    @property
    def pid(self) -> int | None: ...

    async def term(self, wait: float) -> int | None: ...

    async def kill(self) -> None: ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def restart(self, **settings: str) -> None:
        """Start the node again on the same ports, killing it first where it still runs."""

    def log_lines(self) -> Sequence[str]: ...

    def events(self, **wanted: Any) -> list[dict[str, Any]]:
        """Records of the node's event log with these field values."""


class Store(Protocol):
    """The Redis of a deployment, as something that can fail."""

    @property
    def url(self) -> str: ...

    async def kill(self) -> None: ...

    async def stop(self, *, keep: bool = False) -> None:
        """End it cleanly; with `keep` the next `restart(empty=False)` has its data again."""

    async def restart(self, *, empty: bool) -> None: ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def leads(self) -> bool:
        """Whether it is a primary."""

    async def followers(self) -> int:
        """How many replicas are connected to it."""

    async def in_sync(self) -> bool:
        """Of a replica: whether it is connected to its primary and has what that one has."""


class Sink(Protocol):
    """A stand-in for the store that audit events are copied to."""

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    def log_lines(self) -> Sequence[str]: ...


class Deployment(Protocol):
    """A standing copy of the target."""

    @property
    def target(self) -> Target: ...

    @property
    def wanted(self) -> "Wanted":
        """What it was asked for with."""

    @property
    def nodes(self) -> Mapping[str, Node]: ...

    @property
    def store(self) -> Store | None: ...

    @property
    def store_url(self) -> str:
        """Where Redis itself listens, not the link in front of it; empty where there is none to look into."""

    def fill(self, text: str, node: str = "") -> str:
        """A text of the descriptor, such as the path of a credential, with its placeholders filled for this node."""

    def link(self, node: str) -> Link:
        """The link between this node and its Redis."""

    def peer_link(self, node: str, peer: str) -> Link:
        """The link on which this node sends to that one."""

    async def fail_over(self) -> Store:
        """The Redis dies, Sentinels put a replica in its place, and every link leads there; the one that died."""

    async def replica(self) -> tuple[Store, Link]:
        """A replica of the Redis, and the link on which it follows."""

    async def client_link(self, node: str, url: str = "http") -> tuple[Link, str]:
        """A fresh link between us and this node, and the URL that leads through it."""

    async def sink(self) -> Sink:
        """The audit sink that the nodes write to, as a process that can be paused."""

    def fault_plane(self) -> FaultPlane:
        """What puts faults on it."""

    async def trouble(self) -> str:
        """What of ours, between the target's parts, has failed by itself; the target is not to blame for that."""

    def obituaries(self) -> list[str]:
        """Which of its nodes have ended although nobody told them to, and how."""

    def run_queue_wait(self) -> float:
        """Seconds that the deployment's processes have stood in the run queue so far."""


@dataclass(frozen=True)
class Wanted:
    """What a check asks of the deployment that it runs on."""

    isolation: str
    needs: frozenset[Capability]
    settings: Mapping[str, str]
    nodes: int | None = None
    variant: str = ""

    @property
    def links(self) -> bool:
        return bool(
            self.needs
            & {
                Capability.TAP,
                Capability.CHAOS_LATENCY,
                Capability.CHAOS_PARTITION,
                Capability.CHAOS_REDIS,
            }
        )


class Deployments(Protocol):
    """Hands out deployments: shared ones to many checks at once, own ones to one check."""

    async def lease(self, wanted: Wanted, target: Target, timings: Timings) -> Deployment: ...

    async def give_back(self, deployment: Deployment) -> None: ...

    async def close(self) -> None: ...


class Reporter(Protocol):
    def handle(self, event: dict[str, Any]) -> None: ...
