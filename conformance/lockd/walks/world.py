"""The node as a walk meets it. Commands name things as the model does; here they become ids, endpoints and terms."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

from holdfast.check.finding import Inconclusive
from holdfast.check.walk.vocabulary import NO_NODE, Command, Seen
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.ballot import Ballot
from holdfast.conformance.lockd.spy import BROKEN, Call
from holdfast.conformance.lockd.walks.looks import WRITE_ROUTES, Watcher, pair_of, seen_of
from holdfast.conformance.lockd.walks.malformed import malformed_requests
from holdfast.conformance.lockd.walks.sights import Asked, Changed, Decided, Listed
from holdfast.conformance.lockd.walks.stage import Stage
from holdfast.conformance.lockd.walks.state import (
    APPLIED,
    DECIDED,
    FAR,
    GONE,
    ISLAND,
    NODE,
    PROBE,
    RM,
    SPIES,
    STRANGER,
    WRITES,
)
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.wire import Request

# Between two terms that walks name: more than the node's own candidacies can climb meanwhile.
RUNG = 1000


class LockdWorld(Watcher):
    """`done` is called when the walk has left the stage."""

    def __init__(self, stage: Stage, term: int, done: Callable[[], None]) -> None:
        super().__init__(stage, term)
        self._done = done
        self._txns = {name: stage.lockd.txn() for name in (*DECIDED, *APPLIED)}
        self._pairs: set[tuple[str, str]] = set()
        self._closed: set[str] = set()

    async def close(self) -> None:
        try:
            await self._stage.clear(self._backends)
        finally:
            self._done()

    def relation(self, _command: Command) -> str:
        return NO_NODE

    def can(self, command: Command) -> bool:
        # A node that has just begun anew has shown no term yet.
        return self._term > {"below": 1, "current": 0}.get(command.get("term"), -1)

    async def do(self, command: Command) -> Seen:
        performers: Mapping[str, Callable[[Command], Awaitable[Seen]]] = {
            "announce": self._announce,
            "depose": self._depose,
            "leave": self._leave,
            "exit": self._exit,
            "return": self._return,
            "crash": self._crash,
            "stop": self._stop,
            "intrude": self._intrude,
            "malformed": self._malformed,
            "votes": self._votes,
            "trouble": self._trouble,
            "report": self._report,
            "acquire": self._lease,
            "renew": self._lease,
            "release": self._lease,
            "register": self._change,
            "unregister": self._change,
            "decide": self._decide,
            "apply": self._apply,
            "replay": self._replay,
            "leader": self._leader,
            "members": self._members,
            "registry": self._registry,
            "heard": self._heard,
        }
        seen = await performers[command.name](command)
        if any(spy.was_late for spy in self._stage.spies.values()):
            # The node may have given it up, and whatever it does next may come of that.
            raise Inconclusive("a peer played by the suite was late")
        return seen

    async def _announce(self, command: Command) -> Seen:
        who, at = command.get("who"), command.get("at") or command.get("who")
        self._forget(at)
        answer = await self._call(wire.announce(self._place(at)), who)
        return seen_of(answer, self._listed(answer))

    def _forget(self, who: str) -> None:
        """Empties a spy's lease slot, so that it takes a renewal again after it was away or refused.

        A voter that remembers a lapsed lease of this term is right to refuse it, and the leader would have to go.
        """
        if who in SPIES:
            self._stage.spies[who].ballot = Ballot()

    async def _depose(self, command: Command) -> Seen:
        """Announces a peer that refuses votes; then waits until nobody leads, which the next look will judge."""
        self._stage.spies[command.get("who")].refuse_votes()
        seen = await self._announce(command)
        T = self._lockd.T
        await self._at_most(self._leaderless, T.tick_settled_max + T.lease_settled_max, "the node to step down")
        return seen

    async def _leaderless(self) -> bool:
        return not (await self._call(wire.leader())).has_leader

    async def _leave(self, command: Command) -> Seen:
        request = wire.leave(self._lockd.dialect.guard if command.flag("marked") else None)
        if named := command.get("naming"):
            names = {"identity": self._stage.node_id(named), "self_endpoint": self._place(named)}
            request = Request("POST", wire.LEAVE, {**names, "endpoint": self._place(named)})
        answer = await self._call(request, command.get("who"))
        return seen_of(answer, self._listed(answer))

    async def _exit(self, _command: Command) -> Seen:
        """Lets the node leave; where it led, it waits a little for the releases, which may come after the answer."""
        began, led = time.monotonic(), (await self._call(wire.leader())).leader.id == self._stage.node_id(NODE)
        answer = await self._call(wire.leave(), NODE)

        async def released() -> bool:
            return all(self._got(who, began, _is_release) for who in SPIES if self._got(who, began, self._is_own_leave))

        if led:
            await self._at_most(released, self._lockd.T.handover_max, "the releases of the node")
        return seen_of(answer, self._leaving(self._listed(answer), began))

    def _leaving(self, listed: Listed, began: float) -> Listed:
        """Returns the list with what spies got of a leave since then."""
        told = {who: self._got(who, began, self._is_own_leave) for who in SPIES}
        self._explain(*(call for calls in told.values() for call in calls))
        releases = {who: tuple(call.term for call in self._got(who, began, _is_release)) for who in SPIES}
        return replace(listed, leaves={who: len(calls) for who, calls in told.items()}, releases=releases)

    def _is_own_leave(self, call: Call) -> bool:
        header = self._lockd.dialect.guard_header
        return call.path == wire.LEAVE and call.marked(header) and call.node_id == self._stage.node_id(NODE)

    async def _return(self, _command: Command) -> Seen:
        answer = await self._call(wire.announce(self._place(NODE)), NODE)
        return seen_of(answer, self._listed(answer))

    async def _crash(self, _command: Command) -> Seen:
        killed = await self._lockd.kill(self._stage.node)
        answer = await self._begun_anew()
        return replace(seen_of(answer, self._listed(answer)), sent=killed.lo)

    async def _stop(self, _command: Command) -> Seen:
        lockd, node, began = self._lockd, self._stage.node, time.monotonic()
        status, _ = await lockd.term(node, lockd.T.never("exit_max"))
        if status is None:
            await lockd.kill(node)
        left = self._leaving(Listed(Answer(0, {}, {}, "", began, began), ()), began)
        answer = await self._begun_anew()
        sight = replace(self._listed(answer), leaves=left.leaves, releases=left.releases, ended=status is not None)
        return replace(seen_of(answer, sight), sent=began)

    async def _begun_anew(self) -> Answer:
        """Starts the node again and waits until it lists itself, which the model judges; returns the list.

        Voters that remember leases from before would be right to refuse its first terms, so spies forget them.
        """
        lockd, node = self._lockd, self._stage.node
        for who in SPIES:
            self._forget(who)
        await lockd.restart(node)
        self._txns = {name: lockd.txn() for name in self._txns}
        self._term = 0
        answer = await lockd.call(wire.members(), node=node)

        async def listed() -> bool:
            nonlocal answer
            answer = await lockd.call(wire.members(), node=node)
            return self._place(NODE) in answer.endpoints

        await self._at_most(listed, lockd.T.never("self_listed_max"), "the node to list itself")
        return answer

    async def _intrude(self, command: Command) -> Seen:
        where, pair = self._place(STRANGER), (self._backends[ISLAND], self._place(RM))
        requests = {
            "announce": wire.announce(where),
            "leave": wire.leave(),
            "register": wire.register(*pair),
            "unregister": wire.unregister(*pair),
        }
        request = requests[command.get("route")]
        answer = await self._lockd.call(request, node=self._stage.node, unwelcome=True)
        return seen_of(answer, answer)

    async def _malformed(self, command: Command) -> Seen:
        requests = malformed_requests(self._place(STRANGER), self._backends[ISLAND])
        answer = await self._call(requests[command.get("call")], STRANGER)
        return seen_of(answer, answer)

    async def _votes(self, command: Command) -> Seen:
        spy = self._stage.spies[command.get("who")]
        if command.flag("on"):
            self._forget(command.get("who"))
            spy.grant_votes()
        else:
            spy.refuse_votes()
        return _now()

    async def _trouble(self, command: Command) -> Seen:
        who, how, began = command.get("who"), command.get("how"), time.monotonic()
        spy = self._stage.spies[who]
        spy.off(wire.LEADER, *WRITE_ROUTES)
        if how == GONE:
            await spy.close()
            self._closed.add(who)
        elif who in self._closed:
            self._forget(who)
            await spy.open()
            self._closed.discard(who)
        for path in {PROBE: (wire.LEADER,), WRITES: WRITE_ROUTES}.get(how, ()):
            spy.on(path, BROKEN)
        return Seen(began, time.monotonic(), True, "")

    async def _report(self, command: Command) -> Seen:
        who, began, ttl = command.get("who"), time.monotonic(), self._lockd.T.leader_ttl
        term = self._stage.highest = self._term_of("above")
        lease = wire.Leader(self._stage.node_id(who), self._place(who), term, round((time.time() + ttl) * 1000))
        self._stage.spies[who].report(lambda: lease)
        now = time.monotonic()
        unsaid = Answer(0, {}, {}, "", began, now)
        return Seen(began, now, Asked(unsaid, term, ttl), f"term {term}")

    def _term_of(self, named: str) -> int:
        return {"": 0, "below": self._term - 1, "current": self._term}.get(named, self._stage.highest + RUNG)

    async def _lease(self, command: Command) -> Seen:
        who, term = command.get("who"), self._term_of(command.get("term"))
        id_, T = self._stage.node_id(who), self._lockd.T
        ttl = T.leader_ttl / 2 if command.flag("short") else T.leader_ttl
        request = {
            "acquire": lambda: wire.acquire(id_, self._place(who), term, round(ttl * 1000)),
            "renew": lambda: wire.renew(id_, term, round(ttl * 1000)),
            "release": lambda: wire.release(id_, term),
        }[command.name]()
        answer = await self._call(request, who)
        self._stage.highest = max(self._stage.highest, term)
        if answer.ok and command.name == "acquire":
            self._term = term
        given = answer.leader
        named = (given.id, self._stage.name_of(given.endpoint), given.term) == (id_, who, term)
        return seen_of(answer, Asked(answer, term, ttl, named))

    async def _change(self, command: Command) -> Seen:
        """Makes a change; after one that failed it waits until what members took is undone, or never will be."""
        backend, endpoint = self._backends[command.get("backend")], self._place(command.get("endpoint"))
        pair, began = (backend, endpoint), time.monotonic()
        had, before = pair in self._pairs, {who: pair in self._stage.spies[who].kept for who in SPIES}
        make = wire.register if command.name == "register" else wire.unregister
        headers = self._lockd.dialect.replica if command.flag("replica") else None
        request = make(backend, endpoint, headers)
        answer = await self._call(request, STRANGER)
        if answer.ok:
            (self._pairs.add if command.name == "register" else self._pairs.discard)(pair)
        elif answer.answered:
            self._undoing[pair] = time.monotonic() + self._lockd.T.never("undo_max")
            await self._undone(pair, had=had, whose=[who for who in SPIES if before[who] is had])
        calls = {who: self._got(who, began, partial(_is_write, pair)) for who in SPIES}
        self._explain(*(call for each in calls.values() for call in each))
        header = self._lockd.dialect.replica_header
        sight = Changed(
            answer,
            tuple(self._stage.name_of(each) for each in answer.endpoints),
            before,
            {who: pair in self._stage.spies[who].kept for who in SPIES},
            {who: sum(call.path == request.path for call in each) for who, each in calls.items()},
            all(call.marked(header) for each in calls.values() for call in each),
        )
        return seen_of(answer, sight)

    async def _undone(self, pair: tuple[str, str], *, had: bool, whose: list[str]) -> None:
        async def look() -> bool:
            return all((pair in self._stage.spies[who].kept) is had for who in whose)

        await self._at_most(look, self._lockd.T.never("undo_max"), "what members took to be undone")

    async def _decide(self, command: Command) -> Seen:
        txn, way, began = self._txns[command.get("txn")], command.get("as"), time.monotonic()
        far = [wire.participant("default", "k", self._backends[ISLAND])] if command.get("txn") == FAR else []
        answer = await self._call(wire.decide(txn, way, far))
        forwarded = {who: len(self._got(who, began, partial(_is_decision, txn, way))) for who in SPIES}

        def applies() -> list[Call]:
            return self._got(RM, began, partial(_is_apply, txn))

        async def applied() -> bool:
            return bool(applies())

        if far and answer.ok and not any(forwarded.values()):
            await self._at_most(applied, self._lockd.T.not_leader_answer_max, "the apply at the RM")
        terms = tuple(wire.number(call.body.get("tc_term")) for call in applies())
        leader = self._stage.name_of(answer.leader.endpoint)
        return seen_of(answer, Decided(answer, leader=leader, forwarded=forwarded, applied=terms))

    async def _apply(self, command: Command) -> Seen:
        term = self._term_of(command.get("term"))
        self._stage.highest = max(self._stage.highest, term)
        one = [wire.participant("default", "k", self._stage.backend)]
        answer = await self._call(
            wire.apply(self._txns[command.get("txn")], command.get("as"), one, term=term or None),
        )
        return seen_of(answer, Decided(answer, term))

    async def _replay(self, command: Command) -> Seen:
        answer = await self._call(wire.replay(self._txns[command.get("txn")]))
        return seen_of(answer, Decided(answer))


def _is_write(pair: tuple[str, str], call: Call) -> bool:
    return call.path in WRITE_ROUTES and pair_of(call) == pair


def _is_apply(txn: str, call: Call) -> bool:
    return call.path in (wire.COMMIT, wire.ROLLBACK) and call.body.get("txn_id") == txn


def _is_release(call: Call) -> bool:
    return call.path == wire.RELEASE


def _is_decision(txn: str, way: str, call: Call) -> bool:
    return call.path == wire.DECIDE and (call.body.get("txn_id"), call.body.get("state")) == (txn, way)


def _now() -> Seen:
    now = time.monotonic()
    return Seen(now, now, True, "")
