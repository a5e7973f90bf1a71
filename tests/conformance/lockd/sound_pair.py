"""Two sound nodes in memory that agree on their leader, for walks of the cluster's model without a network."""

from dataclasses import dataclass, field
from typing import Any

from holdfast.check.walk.play import Clock
from holdfast.check.walk.vocabulary import Command, Seen
from holdfast.conformance.lockd.walks.cluster.state import NODES, other
from holdfast.conformance.lockd.walks.sights import Asked, Changed, Decided, Listed, Registered, Shown
from holdfast.conformance.lockd.walks.state import STRANGER
from holdfast.conformance.lockd.wire import STATUS_OF, Answer

LEADER, TERM, TAKES, MEMBERSHIP = "n1", 7, 0.01, 9.0


@dataclass
class MemoryPair:
    wrong: str = ""
    now: float = 100.0
    strangers: dict[str, float] = field(default_factory=dict)
    pairs: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: {node: set() for node in NODES})
    decided: dict[str, dict[str, str]] = field(default_factory=lambda: {node: {} for node in NODES})
    applied: dict[tuple[str, str], str] = field(default_factory=dict)

    def clock(self) -> Clock:
        async def sleep(seconds: float, _why: str) -> None:
            self.now += seconds

        return Clock(lambda: self.now, sleep)

    def can(self, _command: Command) -> bool:
        return True

    def relation(self, command: Command) -> str:
        return "leader" if command.get("node") == LEADER else "follower"

    async def close(self) -> None:
        return None

    async def do(self, command: Command) -> Seen:
        sent = self.now
        what = getattr(self, f"_{command.name}")(command, command.get("node"))
        self.now += TAKES
        return Seen(sent, self.now, what, what.answer.describe())

    def _answer(self, code: str = "", **fields: Any) -> Answer:
        body = {"error": code} if code else fields
        return Answer(STATUS_OF[code] if code else 200, {}, body, "", self.now, self.now, self.now)

    def _names(self, node: str) -> tuple[str, ...]:
        there = self.now < self.strangers.get(node, 0.0) + MEMBERSHIP
        return (*NODES, *([STRANGER] if there else []))

    def _announce(self, _command: Command, node: str) -> Listed:
        self.strangers[node] = self.now
        return Listed(self._answer(expires_at_unix=round((self.now + MEMBERSHIP) * 1000)), self._names(node))

    def _leave(self, _command: Command, node: str) -> Listed:
        self.strangers.pop(node, None)
        return Listed(self._answer(), self._names(node))

    def _members(self, _command: Command, node: str) -> Listed:
        return Listed(self._answer(), self._names(node))

    def _register(self, command: Command, node: str) -> Changed:
        return self._change(command, node)

    def _unregister(self, command: Command, node: str) -> Changed:
        return self._change(command, node)

    def _change(self, command: Command, node: str) -> Changed:
        pair = command.get("backend"), command.get("endpoint")
        alone = command.flag("replica") and self.wrong != "a replica is replicated"
        if STRANGER in self._names(node) and not command.flag("replica"):
            return Changed(self._answer("tc_rm_replication_failed"), (), {}, {}, {})
        for each in (node,) if alone else (node, other(node)):
            if not (self.wrong == "unregister is local" and command.name == "unregister" and each != node):
                (self.pairs[each].add if command.name == "register" else self.pairs[each].discard)(pair)
        return Changed(self._answer(), (), {}, {}, {})

    def _decide(self, command: Command, node: str) -> Decided:
        at = node if self.wrong == "a follower decides" else LEADER
        way = self.decided[at].setdefault(command.get("txn"), command.get("as"))
        return Decided(self._answer(state=way) if way == command.get("as") else self._answer("txn_conflict"))

    def _replay(self, command: Command, node: str) -> Decided:
        way = self.decided[node].get(command.get("txn"))
        return Decided(self._answer(state=way) if way else self._answer("txn_not_found"))

    def _term(self, command: Command) -> int:
        return {"": 0, "below": TERM - 1, "current": TERM}.get(command.get("term"), TERM + 1000)

    def _apply(self, command: Command, node: str) -> Decided:
        term = self._term(command)
        if term != TERM:
            return Decided(self._answer("tc_term_stale" if term else "tc_term_required"), term)
        way = self.applied.setdefault((node, command.get("txn")), command.get("as"))
        return Decided(self._answer() if way == command.get("as") else self._answer("txn_conflict"), term)

    def _acquire(self, command: Command, _node: str) -> Asked:
        term = self._term(command)
        return Asked(self._answer("tc_term_stale" if term < TERM else "tc_lease_active"), term)

    def _renew(self, command: Command, node: str) -> Asked:
        return self._acquire(command, node)

    def _release(self, command: Command, node: str) -> Asked:
        return self._acquire(command, node)

    def _leader(self, _command: Command, _node: str) -> Shown:
        return Shown(self._answer(), LEADER, LEADER, TERM)

    def _registry(self, _command: Command, node: str) -> Registered:
        return Registered(self._answer(), tuple(sorted(self.pairs[node])), {})
