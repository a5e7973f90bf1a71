"""The driver: the client side of the lockd protocol. Checks talk to the target only through it.

It adds two things to `Caller`: looking (what a node shows), and waiting for it. Looks are calls over TLS, so they are
made less often than the kernel polls, and a condition over a whole cluster less often still.
"""

import time
from typing import ClassVar

from holdfast.check.finding import Finding, NotObservable, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.caller import Caller
from holdfast.conformance.lockd.wire import Answer, Leader
from holdfast.conformance.shared.wire import Request

# Seconds between two looks. Each is a call over TLS, and a look at a whole cluster is six calls.
LOOK = 0.1
CLUSTER_LOOK = 0.25


class Lockd(Caller):
    """One target as a check sees it: its nodes, what they show, and waiting for it."""

    look_every: ClassVar[float] = LOOK

    async def another(self) -> "Lockd":
        """Returns a driver for one more deployment."""
        twin = type(self)(self.context, self.T, await self.context.another())
        self.context.stack.push_async_callback(twin.hang_up)
        return twin

    @property
    def lone(self) -> str:
        """The node that has no other real member; in a cluster, spies would change the quorum of real nodes."""
        if len(self.nodes) == 1:
            return self.nodes[0]
        if self.dialect.lone_node in self.nodes:
            return self.dialect.lone_node
        raise NotObservable("[[node]] start, or [dialect] lone_node: a node that has no other real member")

    async def refuses_to_start(self, node: str, **settings: str) -> tuple[str, Moment]:
        """Starts the node with settings that it must refuse; returns how it ended ("" if it serves), and when."""
        return await self.restart_fails(node, "startup_exit_max", **settings)

    async def start_beside(self, node: str, url: str, **settings: str) -> None:
        """Starts the node where the launcher does not look for it: at another port, or in clear text."""

        async def serves() -> bool:
            return await self._healthy(url)

        await self.start_unready(node, serves, "startup_exit_max", what=f"{node} to serve {url}", **settings)

    async def _healthy(self, url: str) -> bool:
        return (await self.call(Request("GET", self.dialect.health), url=url)).ok

    async def detour(self, node: str) -> str:
        """Returns another endpoint of the same node: a link that leads to its port."""
        kind = "https" if "https" in self.deployment.nodes[node].urls else "http"
        _, url = await self.deployment.client_link(node, kind)
        return url

    def closed_port(self, scheme: str = "https") -> str:
        return super().closed_port(scheme)

    async def leader(self, node: str | None = None) -> Answer:
        return await self.call(wire.leader(), node=node)

    async def valid_leader(self, node: str | None = None) -> Leader | None:
        answer = await self.leader(node)
        return answer.leader if answer.has_leader else None

    async def members(self, node: str | None = None) -> list[str]:
        answer = await self.call(wire.members(), node=node)
        expect(answer, wire.ok(), why="the member list")
        return answer.endpoints

    async def registered(self, node: str | None = None) -> dict[str, wire.Backend]:
        answer = await self.call(wire.backends(), node=node)
        expect(answer, wire.ok(), why="the RM registry")
        return answer.backends

    async def entries(self, backend: str, node: str | None = None) -> list[str]:
        found = (await self.registered(node)).get(backend)
        return sorted(found.endpoints) if found else []

    async def backend_of(self, node: str) -> str:
        """Returns the node's own backend hash: the newest with its endpoint, since restarts may leave older ones."""
        mine = self.endpoint(node)

        async def look() -> str | None:
            found = {h: b for h, b in (await self.registered(node)).items() if mine in b.endpoints}
            return max(found, key=lambda each: found[each].updated_at) if found else None

        backend, _ = await self.comes(look, "rm_listed_max", what=f"{node} to register itself")
        return backend

    def txn(self) -> str:
        return wire.xid(self.context.random.randbytes(12))

    async def recorded(self, txn: str, node: str | None = None) -> Answer:
        return await self.call(wire.replay(txn), node=node)

    async def leads(self, node: str, bound: str = "lease_settled_max", *, above: int = 0) -> tuple[Leader, Moment]:
        """Waits until the node reports itself as valid leader at a term above this one."""
        mine = self.endpoint(node)

        async def look() -> Leader | None:
            found = await self.valid_leader(node)
            return found if found and found.endpoint == mine and found.term > above else None

        return await self.comes(look, bound, what=f"{node} to lead at a term above {above}")

    async def vote(self, candidate: str, term: int, ttl_ms: int, node: str) -> Answer:
        """Gets the vote of a leaderless node. Tries again after a refusal, since the node votes for itself at times."""
        request = wire.acquire(candidate, self.url(node), term, ttl_ms)

        async def granted() -> Answer | None:
            answer = await self.call(request, node=node)
            expect(answer, wire.ok(granted=True), wire.refused("tc_lease_active"), why=f"a vote for {candidate}")
            return answer if answer.ok else None

        answer, _ = await self.T.until(granted, give_up=self.T.leader_ttl, what=f"a vote for {candidate} at {term}")
        return answer

    async def without_leader(self, node: str) -> Moment:
        """Waits until the node shows no valid leader; returns when."""

        async def look() -> bool:
            return await self.valid_leader(node) is None

        _, seen = await self.comes(look, "lease_settled_max", what=f"{node} to have no leader")
        return seen

    async def introduce(self, *nodes: str) -> None:
        """Announces every node to every node, with its own certificate, instead of waiting for their ticks."""
        for node in nodes:
            for other in nodes:
                await self.call(wire.announce(self.endpoint(node)), self.own(node), node=other)

    async def agreed(self, *nodes: str, bound: str = "cluster_leader_max", above: int = 0) -> tuple[Leader, Moment]:
        """Waits until these nodes list exactly each other and follow one valid leader; returns it, and when."""
        wanted = sorted(self.endpoint(node) for node in nodes)

        async def look() -> Leader | None:
            lists = [await self.members(node) for node in nodes]
            if any(sorted(each) != wanted for each in lists):
                return None
            return await self.one_leader(*nodes, above=above)

        return await self.comes(look, bound, what="equal lists and one leader", every=CLUSTER_LOOK)

    async def one_leader(self, *nodes: str, above: int = 0) -> Leader | None:
        """Returns the leader that all of these nodes show; None if they differ or have none."""
        seen = [await self.valid_leader(node) for node in nodes]
        first = seen[0]
        same = {(each.id, each.endpoint, each.term) for each in seen if each}
        return first if first and None not in seen and len(same) == 1 and first.term > above else None

    async def cluster(self) -> tuple[list[str], Leader]:
        """Waits until all nodes agree; returns them, and their leader."""
        await self.introduce(*self.nodes)
        leader, _ = await self.agreed(*self.nodes)
        return self.nodes, leader

    def at(self, endpoint: str) -> str:
        """Returns the node at this endpoint. Raises Finding if no node of the deployment is."""
        for node in self.nodes:
            if self.endpoint(node) == endpoint:
                return node
        raise Finding([f"one of {', '.join(self.nodes)}"], endpoint, "the leader's endpoint")

    def moment_of(self, wall_ms: float) -> Moment:
        """Returns a time of the wire (Unix milliseconds) on the monotonic clock."""
        at = wall_ms / 1000 - time.time() + time.monotonic()
        return Moment(at, at)
