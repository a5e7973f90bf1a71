"""The driver: the client side of the lockd protocol. Checks talk to the target only through it.

It adds two things to `Caller`: looking (what a node shows), and waiting for it. Looks are calls over TLS, so they are
made less often than the kernel polls, and a condition over a whole cluster less often still.

Nearly every check begins with a state that other rows promise: a node leads, a cluster agrees, a leader has stepped
down. Waiting for it (`awaits`) names the row that owns it. In a check of that row it is judged, with its bound; in
every other check a state that does not come leaves the row under test undecided.
"""

import time
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeVar

from holdfast.check.context import Context
from holdfast.check.finding import Finding, NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.caller import Caller
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.views import Views, two_in_one_term
from holdfast.conformance.lockd.wire import Answer, Leader
from holdfast.conformance.shared.wire import Request
from holdfast.target.deployment import Deployment

R = TypeVar("R")
# Seconds between two looks. Each is a call over TLS, and a look at a whole cluster is six calls.
LOOK = 0.1
CLUSTER_LOOK = 0.25


class Lockd(Caller):
    """One target as a check sees it: its nodes, what they show, and waiting for it."""

    look_every: ClassVar[float] = LOOK

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        self.views = Views(self)

    def noticed(self, node: str, request: Request, answer: Answer) -> None:
        self.views.note(node, request, answer)

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

    async def lasting_leader(self, node: str) -> Leader | None:
        """Returns the leader that the node shows, but for a candidacy of its own that comes to nothing.

        A candidate asks itself too, so its own vote may stand in its slot, and be shown, while it waits for the others.
        """
        leader, asked = await self.valid_leader(node), time.monotonic()
        while leader is not None and leader.endpoint == self.endpoint(node):
            if time.monotonic() > asked + self.T.peer_call_timeout:
                return leader
            await self.T.sleep(self.look_every, "a candidacy to end")
            again = await self.valid_leader(node)
            leader = again if again is not None and again.term == leader.term else None
        return leader

    async def awaits(
        self,
        owner: str,
        look: Callable[[], Awaitable[R | None]],
        bound: str,
        *,
        since: Moment | None = None,
        what: str,
        every: float | None = None,
    ) -> tuple[R, Moment]:
        """Polls until `look` returns a value; judges the time only in a check of the row that owns it."""
        if self.judges(owner):
            return await self.comes(look, bound, since=since, what=what, every=every)
        with self.context.arranging(owner):
            return await self.T.until(
                look, give_up=self.T.never(bound), since=since, what=what, every=every or self.look_every
            )

    async def members(self, node: str | None = None, owner: str = "TC-MEMBER-04") -> list[str]:
        answer = await self.call(wire.members(), node=node)
        with self.context.arranging(owner):
            expect(answer, wire.ok(), why="the member list")
        return answer.endpoints

    async def lists(self, node: str, *endpoints: str, why: str) -> list[str]:
        """Raises Finding unless all of these are in the node's member list; returns the list."""
        seen = await self.members(node)
        demand(set(endpoints) <= set(seen), f"{names(endpoints)} in the list of {node}", names(seen), why)
        return seen

    async def lacks(self, node: str, *endpoints: str, why: str) -> list[str]:
        """Raises Finding if one of these is in the node's member list; returns the list."""
        seen = await self.members(node)
        demand(not set(endpoints) & set(seen), f"no {names(endpoints)} in the list of {node}", names(seen), why)
        return seen

    async def registered(self, node: str | None = None) -> dict[str, wire.Backend]:
        answer = await self.call(wire.backends(), node=node)
        with self.context.arranging("TC-RM-03"):
            expect(answer, wire.ok(), why="the RM registry")
        return answer.backends

    async def entries(self, backend: str, node: str | None = None) -> list[str]:
        found = (await self.registered(node)).get(backend)
        return sorted(found.endpoints) if found else []

    async def backend_of(self, node: str, owner: str = "TC-RM-01") -> str:
        """Returns the node's own backend hash: the newest with its endpoint, since restarts may leave older ones."""
        mine = self.endpoint(node)

        async def look() -> str | None:
            found = {h: b for h, b in (await self.registered(node)).items() if mine in b.endpoints}
            return max(found, key=lambda each: found[each].updated_at) if found else None

        backend, _ = await self.awaits(owner, look, "rm_listed_max", what=f"{node} to register itself")
        return backend

    async def restart(self, node: str, *, owner: str = "TC-JOIN-05", **settings: str) -> Moment:
        """Starts the node again with these settings; returns when."""
        self.views.forget(node)
        with self.context.arranging(owner):
            return await super().restart(node, **settings)

    def txn(self) -> str:
        return wire.xid(self.context.random.randbytes(12))

    async def recorded(self, txn: str, node: str | None = None) -> Answer:
        return await self.call(wire.replay(txn), node=node)

    async def leads(
        self, node: str, bound: str = "lease_settled_max", *, above: int = 0, owner: str = "TC-ELECT-03"
    ) -> tuple[Leader, Moment]:
        """Waits until the node reports itself as valid leader at a term above this one."""
        mine = self.endpoint(node)

        async def look() -> Leader | None:
            found = await self.valid_leader(node)
            return found if found and found.endpoint == mine and found.term > above else None

        return await self.awaits(owner, look, bound, what=f"{node} to lead at a term above {above}")

    async def vote(
        self,
        candidate: str,
        term: int,
        ttl_ms: int,
        node: str,
        *,
        endpoint: str = "",
        who: Identity | None = None,
        owner: str = "TC-ELECT-05",
    ) -> Answer:
        """Gets the vote of a leaderless node. Tries again after a refusal, since the node votes for itself at times."""
        request = wire.acquire(candidate, endpoint or self.url(node), term, ttl_ms)

        async def granted() -> Answer | None:
            answer = await self.call(request, who, node=node)
            expect(answer, wire.ok(granted=True), *wire.no_vote(), why=f"a vote for {candidate}")
            return answer if answer.ok else None

        with self.context.arranging(owner):
            answer, _ = await self.T.until(
                granted, give_up=self.T.never("lease_settled_max"), what=f"a vote for {candidate} at {term}"
            )
        return answer

    async def without_leader(self, node: str, owner: str = "TC-STEP-03") -> Moment:
        """Waits until the node shows no valid leader; returns when."""

        async def look() -> bool:
            return await self.valid_leader(node) is None

        _, seen = await self.awaits(owner, look, "lease_settled_max", what=f"{node} to have no leader")
        return seen

    async def decides(self, node: str, why: str, owner: str = "TC-TXN-01") -> Answer:
        """Lets the node commit a fresh transaction."""
        answer = await self.call(wire.decide(self.txn(), "commit"), node=node)
        with self.context.arranging(owner):
            expect(answer, wire.ok(state="commit"), why=why)
        return answer

    async def introduce(self, *nodes: str) -> None:
        """Announces every node to every node, with its own certificate, instead of waiting for their ticks."""
        for node in nodes:
            for other in nodes:
                await self.call(wire.announce(self.endpoint(node)), self.own(node), node=other)

    async def agreed(
        self, *nodes: str, bound: str = "cluster_leader_max", above: int = 0, owner: str = ""
    ) -> tuple[Leader, Moment]:
        """Waits until these nodes list exactly each other and follow one valid leader; returns it, and when.

        Unless an owner is given, lists that stay different are a matter of the loop, all else one of the election.
        """
        wanted, missing = sorted(self.endpoint(node) for node in nodes), ["TC-LOOP-02"]

        async def look() -> Leader | None:
            lists = [await self.members(node) for node in nodes]
            missing[0] = "TC-LOOP-02" if any(sorted(each) != wanted for each in lists) else "TC-ELECT-04"
            return await self.one_leader(*nodes, above=above) if missing[0] == "TC-ELECT-04" else None

        what, start = "equal lists and one leader", self.T.now()
        try:
            leader, seen = await self.T.until(look, give_up=self.T.never(bound), what=what, every=CLUSTER_LOOK)
        except Finding:
            with self.context.arranging(owner or missing[0]):
                raise
        if self.judges(owner or "TC-ELECT-04"):
            self.T.at_most(bound, since=start, seen=seen, what=what)
        return leader, seen

    async def one_leader(self, *nodes: str, above: int = 0) -> Leader | None:
        """Returns the leader that all of these nodes show; None if they differ or have none.

        Raises Unsafe where two of them show different leaders of one term and nothing excuses it (`Views`).
        """
        seen = {node: await self.valid_leader(node) for node in nodes}
        if split := two_in_one_term(seen):
            await self.views.judge(*split)
        leaders = [each for each in seen.values() if each]
        same = {(each.id, each.endpoint, each.term) for each in leaders}
        first = leaders[0] if len(leaders) == len(nodes) and len(same) == 1 else None
        return first if first and first.term > above else None

    async def cluster(self, owner: str = "") -> tuple[list[str], Leader]:
        """Waits until all nodes agree; returns them, and their leader."""
        await self.introduce(*self.nodes)
        leader, _ = await self.agreed(*self.nodes, owner=owner)
        return self.nodes, leader

    def at(self, endpoint: str) -> str:
        """Returns the node at this endpoint; if no node of the deployment is there, nothing was arranged."""
        found = next((node for node in self.nodes if self.endpoint(node) == endpoint), "")
        with self.context.arranging("TC-ELECT-04"):
            ends = names(self.endpoint(node) for node in self.nodes)
            demand(found, f"one of {ends}", endpoint, "the leader's endpoint")
        return found

    def moment_of(self, wall_ms: float) -> Moment:
        """Returns a time of the wire (Unix milliseconds) on the monotonic clock."""
        at = wall_ms / 1000 - time.time() + time.monotonic()
        return Moment(at, at)
