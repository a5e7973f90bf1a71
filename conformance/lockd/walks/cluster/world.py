"""Two real nodes as a walk meets them: every command goes through the one that it names."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.check.finding import Finding, Inconclusive
from holdfast.check.walk.vocabulary import Command, Seen
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.walks.cluster.state import NODES, Cluster
from holdfast.conformance.lockd.walks.looks import seen_of
from holdfast.conformance.lockd.walks.sights import Asked, Changed, Decided, Listed, Registered, Shown
from holdfast.conformance.lockd.walks.state import APPLIED, BACKENDS, DECIDED, ENDPOINTS, STRANGER
from holdfast.conformance.lockd.walks.world import RUNG
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.wire import Request


class ClusterWorld:
    """`number` is that of the walk; it keeps the backends of one walk apart from those of another."""

    def __init__(self, lockd: Lockd, stranger: Identity, leader: wire.Leader, number: int) -> None:
        self._lockd = lockd
        self._stranger = stranger
        self._term = leader.term
        self._nodes = dict(zip(NODES, lockd.nodes, strict=False))
        self._places = {name: lockd.endpoint(node) for name, node in self._nodes.items()}
        self._places[STRANGER] = nowhere(len(ENDPOINTS) + 1)
        self._places |= {name: nowhere(each) for each, name in enumerate(ENDPOINTS)}
        self._leader = self._name(leader.endpoint)
        self._backends = {name: f"{name}-{number}" for name in BACKENDS}
        self._txns = {name: lockd.txn() for name in (*DECIDED, *APPLIED)}
        self.islands: dict[str, str] = {}

    @classmethod
    async def begin(cls, lockd: Lockd, stranger: Identity, number: int) -> tuple["ClusterWorld", Cluster]:
        """Waits until both nodes agree; returns the world, and the state that it is in."""
        try:
            await lockd.introduce(*lockd.nodes)
            leader, _ = await lockd.agreed(*lockd.nodes)
        except Finding as never:
            raise Inconclusive("the nodes did not come to agree, so no walk could begin") from never
        world = cls(lockd, stranger, leader, number)
        world.islands = {name: await lockd.backend_of(node) for name, node in world._nodes.items()}
        return world, Cluster(world._leader, leader.term)

    async def close(self) -> None:
        """Takes the stranger out again, and what was registered."""
        for node in self._nodes.values():
            await self._lockd.leave_as(self._stranger, node)
            for backend in self._backends.values():
                for endpoint in ENDPOINTS:
                    request = wire.unregister(backend, self._places[endpoint], self._lockd.dialect.replica)
                    await self._lockd.call(request, self._stranger, node=node)

    def can(self, command: Command) -> bool:
        return command.get("term") != "below" or self._term > 1

    def relation(self, command: Command) -> str:
        return "leader" if command.get("node") == self._leader else "follower"

    async def do(self, command: Command) -> Seen:
        performers: Mapping[str, Callable[[Command], Awaitable[Seen]]] = {
            "announce": self._announce,
            "leave": self._leave,
            "register": self._change,
            "unregister": self._change,
            "decide": self._decide,
            "apply": self._apply,
            "replay": self._replay,
            "acquire": self._lease,
            "renew": self._lease,
            "release": self._lease,
            "leader": self._shown,
            "members": self._members,
            "registry": self._registry,
        }
        return await performers[command.name](command)

    async def _call(self, command: Command, request: Request, who: Identity | None = None) -> Answer:
        return await self._lockd.call(request, who, node=self._nodes[command.get("node")])

    def _name(self, endpoint: str) -> str:
        return next((name for name, place in self._places.items() if place == canonical(endpoint)), endpoint)

    def _listed(self, answer: Answer) -> Seen:
        names = tuple(self._name(each) for each in answer.endpoints)
        raw = [str(each) for each in answer.fields.get("endpoints") or []]
        return seen_of(answer, Listed(answer, names, raw == sorted(set(raw))), ", ".join(names))

    async def _announce(self, command: Command) -> Seen:
        return self._listed(await self._call(command, wire.announce(self._places[STRANGER]), self._stranger))

    async def _leave(self, command: Command) -> Seen:
        return self._listed(await self._call(command, wire.leave(), self._stranger))

    async def _members(self, command: Command) -> Seen:
        return self._listed(await self._call(command, wire.members()))

    async def _change(self, command: Command) -> Seen:
        make = wire.register if command.name == "register" else wire.unregister
        headers = self._lockd.dialect.replica if command.flag("replica") else None
        request = make(self._backends[command.get("backend")], self._places[command.get("endpoint")], headers)
        answer = await self._call(command, request, self._stranger)
        return seen_of(answer, Changed(answer, (), {}, {}, {}))

    async def _decide(self, command: Command) -> Seen:
        answer = await self._call(command, wire.decide(self._txns[command.get("txn")], command.get("as")))
        return seen_of(answer, Decided(answer))

    async def _apply(self, command: Command) -> Seen:
        one = [wire.participant("default", "k", self.islands[command.get("node")])]
        term, txn = self._term_of(command), self._txns[command.get("txn")]
        answer = await self._call(command, wire.apply(txn, command.get("as"), one, term=term or None))
        return seen_of(answer, Decided(answer, term))

    async def _replay(self, command: Command) -> Seen:
        answer = await self._call(command, wire.replay(self._txns[command.get("txn")]))
        return seen_of(answer, Decided(answer))

    def _term_of(self, command: Command) -> int:
        terms = {"": 0, "below": self._term - 1, "current": self._term, "above": self._term + RUNG}
        return terms[command.get("term")]

    async def _lease(self, command: Command) -> Seen:
        term, ttl = self._term_of(command), self._lockd.T.leader_ttl
        id_, place, ms = self._stranger.node_id, self._places[STRANGER], round(self._lockd.T.leader_ttl * 1000)
        requests: Mapping[str, Any] = {
            "acquire": lambda: wire.acquire(id_, place, term, ms),
            "renew": lambda: wire.renew(id_, term, ms),
            "release": lambda: wire.release(id_, term),
        }
        answer = await self._call(command, requests[command.name](), self._stranger)
        return seen_of(answer, Asked(answer, term, ttl))

    async def _shown(self, command: Command) -> Seen:
        answer = await self._call(command, wire.leader())
        leader = answer.leader
        who = self._name(leader.endpoint) if answer.has_leader else ""
        sound = who not in self._nodes or self._lockd.node_id(self._nodes[who]) == leader.id
        return seen_of(answer, Shown(answer, who, who, leader.term, sound))

    async def _registry(self, command: Command) -> Seen:
        answer = await self._call(command, wire.backends())
        ours = {name: answer.backends[real] for name, real in self._backends.items() if real in answer.backends}
        pairs = tuple((name, self._name(each)) for name, entry in ours.items() for each in entry.endpoints)
        return seen_of(answer, Registered(answer, pairs, {}), ", ".join(" ".join(pair) for pair in pairs) or "nothing")
