"""What a walk can see of the node, in the model's names: its answers, its lists, and what its peers got from it."""

import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.check.finding import Finding
from holdfast.check.walk.vocabulary import Command, Seen
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.spy import Call
from holdfast.conformance.lockd.walks.sights import Heard, Listed, Registered, Saying, Shown
from holdfast.conformance.lockd.walks.stage import Stage
from holdfast.conformance.lockd.walks.state import BACKENDS, NODE, SPIES
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.wire import Request

WRITE_ROUTES = (wire.REGISTER, wire.UNREGISTER)
# Calls in which a node speaks of itself, unless it passes on a change of somebody else's entry.
ITS_OWN = {wire.ACQUIRE: "acquire", wire.RENEW: "renew", wire.ANNOUNCE: "announce", wire.REGISTER: "register"}


class Watcher:
    """`term` is the last one that the node showed or granted."""

    def __init__(self, stage: Stage, term: int) -> None:
        self._stage = stage
        self._lockd = stage.lockd
        self._term = term
        self._backends = {name: f"{name}-{stage.walks}" for name in BACKENDS}
        # Calls that spies got because of a command, and by pair: until when it may be the undo of a failed change.
        self._explained: set[int] = set()
        self._undoing: dict[tuple[str, str], float] = {}
        self._looked = time.monotonic()

    async def _call(self, request: Request, who: str = "") -> Answer:
        """Calls the node as one of our peers, as the node itself, or as a coordinator client."""
        stage = self._stage
        own = self._lockd.own(stage.node) if who == NODE else None
        return await self._lockd.call(request, own or (stage.identity(who) if who else None), node=stage.node)

    def _place(self, name: str) -> str:
        return self._stage.places[name]

    async def _at_most(self, look: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
        """Waits for something that the model judges: if it does not come, that is for a look to tell."""
        with contextlib.suppress(Finding):
            await self._lockd.T.until(look, give_up=seconds, what=what, every=self._lockd.look_every)

    async def _leader(self, _command: Command) -> Seen:
        answer = await self._call(wire.leader())
        leader, stage = answer.leader, self._stage
        by_id, by_place = stage.name_of_id(leader.id), stage.name_of(leader.endpoint)
        if answer.has_leader:
            self._term = leader.term
            stage.highest = max(stage.highest, leader.term)
        sight = Shown(
            answer,
            who=by_place if answer.has_leader else "",
            record=by_id,
            term=leader.term,
            sound=by_id == by_place,
            left=leader.expires_at / 1000 - answer.wall,
        )
        text = f"{by_place} leads in term {leader.term}" if answer.has_leader else f"nobody leads ({answer.describe()})"
        return seen_of(answer, sight, text)

    def _listed(self, answer: Answer) -> Listed:
        names = tuple(self._stage.name_of(each) for each in answer.endpoints)
        raw = [str(each) for each in answer.fields.get("endpoints") or []]
        tidy = raw == sorted(set(raw)) and not any(each.endswith("/") for each in raw)
        return Listed(answer, names, tidy)

    async def _members(self, _command: Command) -> Seen:
        answer = await self._call(wire.members())
        listed = self._listed(answer)
        return seen_of(answer, listed, ", ".join(listed.names) if answer.ok else "")

    async def _registry(self, _command: Command) -> Seen:
        answer = await self._call(wire.backends())
        ours = {name: answer.backends[real] for name, real in self._backends.items() if real in answer.backends}
        pairs = tuple((name, self._stage.name_of(each)) for name, entry in ours.items() for each in entry.endpoints)
        sight = Registered(answer, pairs, {name: entry.updated_at for name, entry in ours.items()})
        text = ", ".join(" ".join(pair) for pair in pairs) or "nothing" if answer.ok else ""
        return seen_of(answer, sight, text)

    async def _heard(self, _command: Command) -> Seen:
        since, self._looked = self._looked, time.monotonic()
        new = [call for who in SPIES for call in self._got(who, since, self._is_unexplained) if call.at < self._looked]
        leaves = [call for call in new if call.path == wire.LEAVE]
        replicas = [call for call in new if call.path in WRITE_ROUTES and self._is_ours(call)]
        asked = tuple((call.at, call.term) for call in new if call.path == wire.ACQUIRE)
        said = {self._saying(call): call for who in SPIES for call in self._got(who, since, self._is_its_own)}
        odd = [call for each, call in said.items() if not each.itself]
        text = "; ".join(call.describe() for call in (*leaves, *replicas, *odd))
        sight = Heard(len(leaves), len(replicas), asked, tuple(sorted(said)))
        return Seen(self._looked, self._looked, sight, text or f"{len(asked)} vote requests")

    def _is_its_own(self, call: Call) -> bool:
        own = call.path in ITS_OWN and call.at < self._looked
        return own and (call.path != wire.REGISTER or not call.marked(self._lockd.dialect.replica_header))

    def _saying(self, call: Call) -> Saying:
        """Returns what a call says about the node, by the fields that name it."""
        stage = self._stage
        named = {"self_endpoint": NODE, "candidate_endpoint": NODE, "endpoint": NODE}
        itself = all(stage.name_of(str(call.body[each])) == who for each, who in named.items() if each in call.body)
        ids = [call.body[each] for each in ("candidate_id", "leader_id") if each in call.body]
        itself = itself and all(each == stage.node_id(NODE) for each in ids)
        if call.path == wire.REGISTER:
            itself = itself and call.backend == stage.backend
        return Saying(ITS_OWN[call.path], itself, wire.number(call.body.get("ttl_ms")) / 1000)

    def _is_ours(self, call: Call) -> bool:
        return call.backend in self._backends.values() and call.at > self._undoing.get(pair_of(call), 0.0)

    def _got(self, who: str, since: float, where: Callable[[Call], bool]) -> list[Call]:
        return [call for call in self._stage.spies[who].calls if call.at >= since and where(call)]

    def _explain(self, *calls: Call) -> None:
        self._explained.update(id(call) for call in calls)

    def _is_unexplained(self, call: Call) -> bool:
        return id(call) not in self._explained


def pair_of(call: Call) -> tuple[str, str]:
    return call.backend, canonical(str(call.body.get("endpoint")))


def seen_of(answer: Answer, what: Any, text: str = "") -> Seen:
    """Returns what came; no answer at all is nothing that a rule could be about."""
    answered = answer.answered or answer.handshake_failed
    return Seen(answer.sent, answer.received, what if answered else None, text or answer.describe(), answer.late)
