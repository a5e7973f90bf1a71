"""Membership leases (spec: Data Model, Announce, Active list): one object for each identity.

A lease belongs to an identity, never to an endpoint. So a node that moves, or gets a new certificate for its node id,
overwrites its lease and is listed once; and two identities at one endpoint are one entry in the list, but two leases.

Each lease is an object of its own, and only an announce or a leave of its identity writes it. So announces of
different members that arrive at the same moment cannot lose each other, even through two nodes of one island. There
is no write that concerns two leases, and nothing removes the lease of a node that has crashed: it expires.

Expiry is judged when the list is read, not by a sweep, so the list is right at every moment. Lapsed objects stay
stored until their identity announces or leaves again. Times are wall clock milliseconds, because the nodes of an
island share them, and a process that is restarted finds them again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.endpoints import normal_endpoint
from holdfast.reference.lockd.store import NAMESPACE

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

PREFIX = "tc-cluster/leases/"
TTL_FACTOR = 3
SHORTEST_TTL = 1.0


@dataclass(frozen=True)
class Lease:
    identity: str
    endpoint: str
    updated_at_unix: int
    expires_at_unix: int


@dataclass(frozen=True)
class Active:
    endpoints: tuple[str, ...] = ()
    updated_at_unix: int = 0


class Members:
    namespace = NAMESPACE

    def __init__(self, node: "Node") -> None:
        self.node = node

    def ttl(self) -> float:
        return max(SHORTEST_TTL, TTL_FACTOR * self.node.settings.leader_ttl)

    def normalize_endpoint(self, text: str) -> str | None:
        return normal_endpoint(text)

    def key(self, identity: str, endpoint: str) -> str:  # noqa: ARG002  # a seam: the key leaves the endpoint out
        return PREFIX + identity

    def renewed(self, old: Lease | None, identity: str, endpoint: str, now: int) -> Lease:  # noqa: ARG002  # a seam
        """Returns the lease after an announce; nothing of the old one is kept."""
        return Lease(identity, endpoint, now, now + round(self.ttl() * 1000))

    def payload(self, lease: Lease) -> dict[str, Any]:
        return asdict(lease)

    def is_active(self, lease: Lease, now: int) -> bool:
        return lease.expires_at_unix > now

    def listed(self, leases: Iterable[Lease]) -> tuple[str, ...]:
        return tuple(sorted({lease.endpoint for lease in leases}, key=str.encode))

    async def announce(self, identity: str, endpoint: str) -> Lease:
        now = self.node.clock.wall_ms()

        def renew(stored: Any) -> Any:
            return self.payload(self.renewed(read_lease(stored), identity, endpoint, now))

        lease = read_lease(await self.node.island.change(self.namespace, self.key(identity, endpoint), renew))
        assert lease is not None
        return lease

    async def remove(self, identity: str) -> None:
        await self.node.island.change(self.namespace, self.key(identity, ""), lambda _: None)

    async def leases(self) -> list[Lease]:
        now = self.node.clock.wall_ms()
        stored = [read_lease(each) for each in await self.node.island.scan(self.namespace, PREFIX)]
        return [lease for lease in stored if lease is not None and self.is_active(lease, now)]

    async def active(self) -> Active:
        leases = await self.leases()
        newest = max((lease.updated_at_unix for lease in leases), default=0)
        return Active(self.listed(leases), newest)


def read_lease(stored: Mapping[str, Any] | None) -> Lease | None:
    if stored is None:
        return None
    return Lease(
        str(stored.get("identity", "")),
        str(stored.get("endpoint", "")),
        int(stored.get("updated_at_unix", 0)),
        int(stored.get("expires_at_unix", 0)),
    )
