"""What the kernel needs from a running target, as protocols that the rooms implement.

A *deployment* is one running copy of a target: its nodes, its Redis if it has one, and the links between them. The room
`fixtures` makes deployments and owns their processes; a check leases one (`Deployments.lease`) and gives it back. The
isolation that the check asked for decides what it may do. A `shared` deployment serves many checks at once, so none of
them may disturb a node or count everything that it sees. A `quiet` or `disruptive` check gets a deployment of its own,
started for it and stopped after it; only a `disruptive` one may kill nodes. Where Holdfast can't start the target there
is one deployment only, and such a check gets a fresh view of it, whose logs begin with the check.

A *link* is a relay, of TCP or UDP, between two parts of the target, or between us and a node, on which faults are put.
Links between the parts exist only where the check needs them (`Wanted.links`), because each costs a hop; links between
us and a node are opened on request.

A node that Holdfast did not start has the same methods; the hook commands of its descriptor serve them.

Nodes start with the deployment, role after role as the descriptor orders them. A check that plays a role itself asks
for a deployment whose nodes are not started yet (`Wanted.started`): it starts its stubs, adds them
(`add_stub`), seeds the store if it wants to, and then starts the nodes (`start_nodes`). Later it may start further ones
(`start_node`), each with settings of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

from holdfast.spec.capability import Capability
from holdfast.spec.timings import Timings
from holdfast.target.descriptor import NodeSpec, Target
from holdfast.target.fault import FaultPlane
from holdfast.target.link_urls import Wire
from holdfast.target.store_section import StorePlan
from holdfast.target.tap import TapLog

NOTHING: Mapping[str, str] = MappingProxyType({})


class StartError(RuntimeError):
    """Raised where a process did not start, or did not become ready."""


@dataclass(frozen=True)
class Ran:
    """How a command of the descriptor ended; `status` is None for one that was killed at its deadline."""

    status: int | None
    stdout: str
    stderr: str


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
    """One link that leads through a relay: from a node to its Redis or to a peer, or from a client to a node."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    async def delay(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> None: ...

    async def stall(self, direction: str = "both") -> None: ...

    async def refuse(self) -> None: ...

    async def cut(self) -> None: ...

    async def lead_to(self, host: str, port: int) -> None:
        """Lets new connections go there from now on."""

    async def heal(self) -> None: ...

    async def counters(self) -> LinkCounters: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class OpenedLink:
    """A link, with the URL behind it and what is spoken there."""

    link: Link
    url: str
    wire: Wire


class Node(Protocol):
    """One process of the target."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def spec(self) -> NodeSpec:
        """What the descriptor says of it; of a copy, what it says of the node that was copied."""

    @property
    def urls(self) -> Mapping[str, str]: ...

    @property
    def pid(self) -> int | None: ...

    async def term(self, wait: float) -> int | None: ...

    async def kill(self) -> None: ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def restart(self, **settings: str) -> None:
        """Starts the node again on the same ports; kills it first if it still runs."""

    def configure(
        self, *, settings: Mapping[str, str] = NOTHING, env: Mapping[str, str] = NOTHING, unset: Iterable[str] = ()
    ) -> None:
        """Changes what its next start is given.

        `unset` names settings that it is to start without, or variables; placeholders work in `settings` and `env`.
        """

    def log_lines(self) -> Sequence[str]: ...

    def events(self, **wanted: Any) -> list[dict[str, Any]]:
        """Returns the records of the node's event log with these field values."""


class Store(Protocol):
    """The Redis of a deployment, as something that can fail."""

    @property
    def url(self) -> str: ...

    async def kill(self) -> None: ...

    async def stop(self, *, keep: bool = False) -> None:
        """Ends it cleanly; with `keep` the next `restart(empty=False)` has its data again."""

    async def restart(self, *, empty: bool) -> None: ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def leads(self) -> bool:
        """Whether it is a primary."""

    async def followers(self) -> int:
        """How many replicas are connected to it."""

    async def in_sync(self) -> bool:
        """Whether it, as a replica, is connected to its primary and has all of its data."""


class StoreServer(Store, Protocol):
    """One server of the store."""

    @property
    def port(self) -> int: ...

    @property
    def pid(self) -> int | None: ...

    async def ask(self, *words: str | int) -> Any:
        """Sends one command to this server and returns its answer."""


class StoreSentinel(Protocol):
    """One Sentinel of the store."""

    @property
    def port(self) -> int: ...

    @property
    def pid(self) -> int | None: ...

    async def ask(self, *words: str | int) -> Any: ...

    async def master(self) -> Mapping[str, str]:
        """Returns what SENTINEL MASTER says, by name."""

    async def kill(self) -> None: ...

    async def stop(self) -> None: ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def restart(self) -> None: ...


class StoreMembers(Store, Protocol):
    """The whole store of a deployment: as a `Store` all its servers together, and each member by itself."""

    @property
    def plan(self) -> StorePlan: ...

    @property
    def primary(self) -> StoreServer:
        """The server that led when somebody last looked (`leader`, `fail_over`)."""

    @property
    def replicas(self) -> Sequence[StoreServer]: ...

    @property
    def sentinels(self) -> Sequence[StoreSentinel]: ...

    @property
    def replication(self) -> Link:
        """From the primary to its replicas; knows stall, cut and heal."""

    async def ask(self, *words: str | int) -> Any:
        """Asks the primary."""

    async def leader(self) -> StoreServer:
        """Asks the Sentinels, else the servers, who leads now."""

    async def fail_over(self, by: Literal["kill", "command"] = "kill") -> StoreServer:
        """Lets Sentinels promote a replica; returns the server that led before."""


class Sink(Protocol):
    """A process that the harness runs in place of the store that audit events are copied to."""

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    def log_lines(self) -> Sequence[str]: ...


class Deployment(Protocol):
    """A running copy of the target."""

    @property
    def target(self) -> Target: ...

    @property
    def wanted(self) -> "Wanted":
        """What the check asked for when it was leased."""

    @property
    def nodes(self) -> Mapping[str, Node]: ...

    def nodes_of(self, role: str) -> Sequence[Node]:
        """Returns the nodes of this role, running or not, in the order in which they came."""

    async def start_nodes(self, *names: str) -> None:
        """Starts these nodes, or all that are not running, in the order of the descriptor; each is ready then."""

    async def start_node(
        self,
        role: str,
        *,
        name: str | None = None,
        known_as: str | None = None,
        settings: Mapping[str, str] = NOTHING,
        env: Mapping[str, str] = NOTHING,
        unset: Iterable[str] = (),
    ) -> Node:
        """Starts a further node of this role; returns it once it is ready.

        `name` is a new name or that of a node that has ended, whose ports and folder it then takes over. `known_as` is
        the id that the node is given ({node}), where that is to be the id of another one. The rest as for
        `Node.configure`. Only a deployment of the check's own takes further nodes.
        """

    async def add_stub(self, name: str, url: str, kind: str = "") -> None:
        """Makes the address of a stub known to nodes that start from now on: {stub.NAME}.

        Where the check needs links, each node that is told of it gets a link to it, `a-stub.NAME`. `kind` is a key as
        in `urls` (`grpc`, `quic`) where the URL does not say what is spoken.
        """

    def take_port(self) -> int:
        """Returns a free port, which is the caller's until the deployment stops."""

    @property
    def store(self) -> StoreMembers | None: ...

    @property
    def store_url(self) -> str:
        """The URL of Redis itself, not of the link in front of it; empty if there is none to look into."""

    def fill(self, text: str, node: str = "") -> str:
        """Returns a text of the descriptor, such as the path of a credential, with its placeholders filled in."""

    async def run(self, argv: Sequence[str], *, name: str, env: Mapping[str, str], deadline: float) -> Ran:
        """Runs a command of the descriptor to its end, `deadline` seconds at most; `name` is for messages."""

    def link(self, node: str) -> Link:
        """Returns the link between this node and its Redis."""

    def peer_link(self, node: str, peer: str, url: str = "") -> Link:
        """Returns the link on which this node calls that peer: its main URL, or the one of this key."""

    def opened(self, subject: str) -> OpenedLink:
        """Returns the link of this name: `a-redis`, `a-sentinel1`, `a-b`, `a-b.grpc` or `a-stub.gc`."""

    async def fail_over(self) -> Store:
        """Kills the Redis, lets Sentinels promote a replica and leads all links to it; returns the dead Redis."""

    async def replica(self) -> tuple[Store, Link]:
        """Starts a replica of the Redis; returns it, and the link over which it replicates."""

    async def client_link(self, node: str, url: str = "http") -> tuple[Link, str]:
        """Opens a link between us and this node; returns it, and the URL that leads through it."""

    async def open_client_link(self, node: str, url: str = "") -> tuple[OpenedLink, str]:
        """Opens a link between us and a URL of this node, TCP or UDP; the main URL if none is named."""

    async def sink(self) -> Sink:
        """Returns the audit sink that the nodes write to; it is a process that can be paused."""

    def tap(self) -> TapLog | None:
        """Returns the notes of what nodes said to Redis; None where nobody listens."""

    def fault_plane(self) -> FaultPlane:
        """Returns what injects faults into this deployment."""

    async def trouble(self) -> str:
        """Returns which relay or server of the harness has failed by itself, "" if none; the target is not to blame."""

    def obituaries(self) -> list[str]:
        """Returns one sentence for each node that has ended though nothing here ended it."""

    def run_queue_wait(self) -> float:
        """Returns the seconds that its processes have waited in run queues so far."""


@dataclass(frozen=True)
class Wanted:
    """What a check asks of the deployment that it runs on.

    `settings` may be meant for all nodes (`grace`), those of a role (`worker.grace`) or one node (`worker-2.grace`).
    `nodes` is a number by role; a plain number is that of the first role, with one node of every other. Without it
    there is one node of each role, or all that are listed where several are needed.
    """

    isolation: str
    needs: frozenset[str]
    settings: Mapping[str, str]
    nodes: int | Mapping[str, int] | None = None
    variant: str = ""
    # Whether what nodes say to Redis is noted, which costs a process and a hop.
    tap: bool = False
    started: bool = True

    @property
    def links(self) -> bool:
        """Whether the nodes' connections have to lead through links."""
        return self.tap or bool(
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
