"""CoordinatorHealthMonitor: every node, whoever leads, watches the heartbeats of all and knows who is dead.

Silence runs from the moment at which a heartbeat was received, not from the time written in it, and only as far as this
node has been able to listen. A node that the ownership store names and nobody has heard is silent since this node first
saw its name there.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.reference.coordinator.messages import NODE_STATUSES, ROLES, Message
from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


@dataclass(frozen=True)
class Peer:
    """What the last heartbeat of another node said, and when it was received."""

    role: str
    status: str
    job_count: int
    heard: float


class CoordinatorHealthMonitor:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.peers: dict[str, Peer] = {}
        self.noticed: dict[str, float] = {}
        self.told_dead: set[str] = set()

    def hear(self, message: Message) -> None:
        self.on_heartbeat(message, self.node.clock.now())

    def on_heartbeat(self, message: Message, received_at: float) -> None:
        node_id = message.text("nodeId")
        if not node_id or node_id == self.node.id:
            return
        role = message.one_of("role", ROLES)
        status = message.one_of("status", NODE_STATUSES) or "Active"
        self.peers[node_id] = Peer(role, status, message.number("jobCount"), received_at)

    def silence(self, node_id: str) -> float:
        """Returns for how long a node has not been heard."""
        peer = self.peers.get(node_id)
        since = peer.heard if peer else self.noticed.get(node_id, self.node.clock.now())
        return self.node.topics.heard_until - since

    def is_dead(self, node_id: str) -> bool:
        return node_id != self.node.id and self.silence(node_id) >= self.node.settings.dead_node_timeout

    def may_be_relieved(self, node_id: str) -> bool:
        """Tells whether a job of this owner may be taken by a handoff that does not say whose it was."""
        peer = self.peers.get(node_id)
        return node_id != self.node.id and (peer is None or peer.status != "Active" or self.is_dead(node_id))

    def live_peers(self) -> dict[str, Peer]:
        return {node_id: peer for node_id, peer in self.peers.items() if not self.is_dead(node_id)}

    def begin_again(self) -> None:
        """Forgets all silence: for a while this node could hear nobody."""
        now = self.node.clock.now()
        self.peers = {name: Peer(p.role, p.status, p.job_count, now) for name, p in self.peers.items()}
        self.noticed = dict.fromkeys(self.noticed, now)

    async def known_owners(self) -> set[str]:
        """Returns all nodes that own jobs by the store, also those that were never heard."""
        return await self.node.ownership.owners()

    async def dead_owners(self) -> set[str]:
        owners = await self.known_owners()
        self.notice(owners)
        return {node_id for node_id in owners if self.is_dead(node_id)}

    def notice(self, owners: set[str]) -> None:
        now = self.node.clock.now()
        self.noticed = {node_id: self.noticed.get(node_id, now) for node_id in owners}

    async def watch(self) -> None:
        """Looks at the owners of the store, and tells of nodes that died or came back."""
        while True:
            with suppress(*AWAY):
                self.notice(await self.known_owners())
            self.tell()
            await self.node.clock.sleep(self.node.settings.heartbeat_interval)

    def tell(self) -> None:
        dead = {node_id for node_id in {*self.peers, *self.noticed} if self.is_dead(node_id)}
        for node_id in dead - self.told_dead:
            self.node.events.emit("node.dead", dead=node_id)
        if dead != self.told_dead:
            self.told_dead = dead
            self.node.metrics.dead.set(len(dead))
            self.node.challenge.on_membership_change(self.live_peers())


class WorkerMonitor:
    """Keeps the last heartbeat of each worker in the store. Every coordinator hears all of them."""

    def __init__(self, node: "Node") -> None:
        self.node = node

    def hear(self, message: Message) -> None:
        if worker_id := message.text("workerId"):
            self.node.spawn(self.keep(worker_id, message))

    async def keep(self, worker_id: str, message: Message) -> None:
        with suppress(*AWAY):
            await self.node.store.keep("workers", {worker_id: message.json()})
