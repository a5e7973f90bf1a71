"""A deployment of one node with the peers that walks play on it: it is used by one walk after the other.

A walk leaves nothing behind that the next would have to know, but two things: terms that were named before, and the
fact that they rise. So a walk begins when the node leads alone again, and in its own term.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.check.finding import ArrangementFailed, Finding, Inconclusive
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.ballot import Ballot
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import Spy, spies
from holdfast.conformance.lockd.walks.state import ENDPOINTS, NODE, SPIES, STRANGER, State


@dataclass
class Stage:
    """`highest` is the highest term that any walk has named, `walks` how many there were."""

    lockd: Lockd
    node: str
    spies: Mapping[str, Spy]
    stranger: Identity
    # The node's own backend, which its applies are about.
    backend: str
    highest: int = 0
    walks: int = 0
    places: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    async def build(cls, lockd: Lockd, *, durable: bool = False) -> "Stage":
        """`durable`: the node gets a store that outlives it."""
        node = lockd.lone
        if durable:
            await lockd.restart(node, join=lockd.url(node), store=lockd.dialect.durable_store)
        made = dict(zip(SPIES, await spies(lockd, len(SPIES)), strict=True))
        places = {who: canonical(spy.endpoint) for who, spy in made.items()}
        places |= {NODE: lockd.endpoint(node), STRANGER: nowhere(len(ENDPOINTS) + 1)}
        places |= {name: nowhere(number) for number, name in enumerate(ENDPOINTS) if name not in places}
        stranger = lockd.authority.server(name=STRANGER)
        try:
            backend = await lockd.backend_of(node)
        except ArrangementFailed as never:
            raise _never_began(lockd, "TC-JOIN-01", "the node to register itself", never) from never
        return cls(lockd, node, made, stranger, backend, places=places)

    def identity(self, who: str) -> Identity:
        return self.stranger if who == STRANGER else self.spies[who].identity

    def node_id(self, who: str) -> str:
        return self.lockd.node_id(self.node) if who == NODE else self.identity(who).node_id

    def name_of(self, endpoint: str) -> str:
        """Returns whose endpoint this is, in the model's names; one that nobody has stays as it is."""
        return next((name for name, place in self.places.items() if place == canonical(endpoint)), endpoint)

    def name_of_id(self, node_id: str) -> str:
        return next((name for name in (NODE, *SPIES, STRANGER) if self.node_id(name) == node_id), node_id)

    async def begin(self) -> State:
        """Makes the spies friendly and forgetful, waits until the node leads alone, and returns its state."""
        for spy in self.spies.values():
            await spy.close()
            spy.script.clear()
            spy.kept.clear()
            spy.ballot = Ballot()
            spy.worst_lag = 0.0
            await spy.open()
        leader = await self._alone()
        for spy in self.spies.values():
            spy.calls.clear()
        self.walks += 1
        self.highest = max(self.highest, leader.term)
        return State(lead=leader.term, floor=leader.term, voted=self.highest)

    async def _alone(self) -> wire.Leader:
        """A lease that was renewed since now is no remainder of one that is lost with the members of the last walk."""
        lockd, mine = self.lockd, self.places[NODE]
        renewed = (time.time() + lockd.T.leader_ttl) * 1000

        async def look() -> wire.Leader | None:
            leader = await lockd.valid_leader(self.node)
            listed = (await lockd.call(wire.members(), node=self.node)).endpoints
            alone = leader and leader.endpoint == mine and listed == [mine]
            return leader if leader and alone and leader.expires_at >= renewed else None

        give_up = lockd.T.never("member_expiry_settled") + lockd.T.never("lease_settled_max")
        try:
            return (await lockd.T.until(look, give_up=give_up, what="the node to lead alone"))[0]
        except Finding as never:
            if not self.walks:
                raise _never_began(lockd, "TC-JOIN-06", "the node to lead alone", never) from never
            raise Inconclusive("the node did not come to lead alone, so no walk could begin") from never

    async def clear(self, backends: Mapping[str, str]) -> None:
        """Takes back what a walk has left: memberships, the node's own leave, entries of the registry."""
        lockd, node = self.lockd, self.node
        for who in (*SPIES, STRANGER):
            await lockd.leave_as(self.identity(who), node)
        await lockd.come_back(node)
        for backend, entry in (await lockd.call(wire.backends(), node=node)).backends.items():
            if backend in backends.values():
                for endpoint in entry.endpoints:
                    request = wire.unregister(backend, endpoint, lockd.dialect.replica)
                    await lockd.call(request, self.stranger, node=node)


def _never_began(lockd: Lockd, row: str, expected: str, never: AssertionError | Inconclusive) -> Exception:
    """Returns what to raise where a node does not come to the state in which the first walk begins.

    Of a node that we have just started the document says that it comes to it. What others did to a node before is not
    known to us.
    """
    if not lockd.context.target.startable:
        return Inconclusive(f"{expected} did not come about, so no walk could begin")
    lockd.context.decided = (row,)
    return Finding([expected], str(never), "before the first walk", late=True)
