"""A spy: a member of the cluster that the suite itself plays, so that a check sees what nodes send to each other.

To the node under test it is a peer: it has a server certificate with a node-id of its own, listens with required client
certificates, joins, votes and, if the check wants it, leads. To the check it is a stub (`conformance/shared/stub.py`):
a record of calls, each with the caller's certificate, and a script. Without a script it grants every vote. Registry
changes that it has accepted are kept in `kept`, so that a check can see whether the node took one back.

It should answer within a quarter of the nodes' call timeout; what it answered later excuses a finding.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from cryptography import x509

from holdfast.check.finding import expect
from holdfast.check.timeline import Moment
from holdfast.check.x509 import uris_of, usages_of
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.identities import Identity, server_ids
from holdfast.conformance.lockd.wire import Leader
from holdfast.conformance.shared.http_stub import HttpCall, HttpStub
from holdfast.conformance.shared.stub import Reply

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

# Share of the nodes' call timeout within which a spy should answer.
_DEADLINE_SHARE = 0.25


def refuses(code: str) -> Reply:
    """Returns the refusal with this error code and the status that belongs to it."""
    return Reply(wire.STATUS_OF[code], {"error": code})


BROKEN = Reply(500, {"error": "internal_error"})


@dataclass
class Call(HttpCall):
    """One call that a spy got."""

    @property
    def uris(self) -> list[str]:
        return uris_of(self.certificate) if self.certificate else []

    @property
    def node_id(self) -> str:
        return next(iter(server_ids(self.uris)), "")

    @property
    def usages(self) -> set[x509.ObjectIdentifier]:
        return usages_of(self.certificate) if self.certificate else set()

    def describe(self) -> str:
        return f"{super().describe()} from {', '.join(self.uris) or 'nobody'}"


class Spy(HttpStub[Call]):
    call: ClassVar[type[HttpCall]] = Call

    def __init__(self, lockd: "Lockd", identity: Identity) -> None:
        deadline = lockd.T.peer_call_timeout * _DEADLINE_SHARE
        super().__init__(lockd, identity.name, deadline, identity.server_context)
        self.lockd = lockd
        self.identity = identity
        self.kept: set[tuple[str, str]] = set()
        self.lease_end = 0
        self._joined: list[asyncio.Task[None]] = []
        self._leading: asyncio.Task[None] | None = None
        self.led = Leader()

    @property
    def node_id(self) -> str:
        return self.identity.node_id

    def refuse_votes(self) -> None:
        self.on(wire.ACQUIRE, refuses("tc_lease_active"))
        self.on(wire.RENEW, refuses("tc_lease_active"))

    def grant_votes(self) -> None:
        self.off(wire.ACQUIRE, wire.RENEW)

    def hold_votes(self, seconds: float) -> None:
        """Grants votes, each after this many seconds."""
        self.on(wire.ACQUIRE, lambda call: replace(self.friendly(call), hold=seconds))

    def report_term(self, term: int) -> None:
        self.on(wire.LEADER, Reply(200, {"term": term}))

    def report(self, leader: Callable[[], Leader]) -> None:
        self.on(wire.LEADER, lambda _call: Reply(200, leader().fields()))

    def friendly(self, call: Call) -> Reply:
        """Returns what a friendly peer answers: everything is granted and confirmed."""
        body, now = call.body, int(time.time() * 1000)
        until = now + int(body.get("ttl_ms") or 0)
        candidate = {"leader_id": body.get("candidate_id"), "leader_endpoint": body.get("candidate_endpoint")}
        listed = {"endpoints": [self.endpoint], "updated_at_unix": now}
        stored: dict[str, Any] = {"backend_hash": body.get("backend_hash"), "endpoints": [], "updated_at_unix": now}
        applied = {"txn_id": body.get("txn_id"), "state": call.path.rpartition("/")[2]}
        answers: dict[str, dict[str, Any]] = {
            wire.ANNOUNCE: listed,
            wire.LEAVE: listed,
            wire.ACQUIRE: {"granted": True, **candidate, "term": body.get("term"), "expires_at": until},
            wire.RENEW: {"renewed": True, **body, "expires_at": until},
            wire.RELEASE: {"released": True},
            wire.REGISTER: stored,
            wire.UNREGISTER: stored,
            wire.DECIDE: {"txn_id": body.get("txn_id"), "state": body.get("state")},
            wire.COMMIT: applied,
            wire.ROLLBACK: applied,
        }
        return Reply(200, answers.get(call.path, {}))

    def accepted(self, call: Call) -> None:
        """Keeps the registry changes that it has accepted, so that an undo can be seen."""
        pair = (str(call.body.get("backend_hash")), str(call.body.get("endpoint")))
        if call.path == wire.REGISTER:
            self.kept.add(pair)
        elif call.path == wire.UNREGISTER:
            self.kept.discard(pair)

    async def announce(self, node: str) -> wire.Answer:
        answer = await self.lockd.call(wire.announce(self.endpoint), self.identity, node=node)
        self.lease_end = answer.expires_at or self.lease_end
        return answer

    async def join(self, *nodes: str) -> None:
        """Becomes a member at these nodes and announces itself once an interval until it leaves or falls silent."""
        for node in nodes:
            expect(await self.announce(node), wire.ok(), why="a spy announces itself")
            self._joined.append(self.lockd.beside(self._stay(node)))
            if not self.lockd.context.target.startable:
                self.lockd.context.stack.push_async_callback(self._take_leave, node)

    async def _stay(self, node: str) -> None:
        while True:
            await asyncio.sleep(self.lockd.T.membership_interval)
            await self.announce(node)

    def fall_silent(self) -> None:
        """Stops announcing, so that its last membership lease expires."""
        for task in self._joined:
            task.cancel()
        self._joined.clear()

    async def leave(self, node: str) -> wire.Answer:
        """Stops announcing and leaves this node."""
        self.fall_silent()
        answer = await self._take_leave(node)
        expect(answer, wire.ok(), why="a spy leaves")
        return answer

    async def _take_leave(self, node: str) -> wire.Answer:
        return await self.lockd.call(wire.leave(self.lockd.dialect.guard), self.identity, node=node)

    async def lead(self, node: str, term: int) -> Leader:
        """Becomes the valid leader of a node that has none: takes its vote, keeps renewing and reports the lease."""
        ttl = int(self.lockd.T.leader_ttl * 1000)
        request = wire.acquire(self.node_id, self.endpoint, term, ttl)

        async def granted() -> bool:
            answer = await self.lockd.call(request, self.identity, node=node)
            expect(answer, wire.ok(granted=True), wire.refused("tc_lease_active"), why="a spy asks for a vote")
            return answer.ok

        await self.lockd.T.until(granted, give_up=self.lockd.T.never("lease_settled_max"), what="a vote for the spy")
        await self._renew(node, term)
        self.report(lambda: self.led)
        self._leading = self.lockd.beside(self._keep_leading(node, term))
        return self.led

    async def _renew(self, node: str, term: int) -> None:
        ttl = int(self.lockd.T.leader_ttl * 1000)
        answer = await self.lockd.call(wire.renew(self.node_id, term, ttl), self.identity, node=node)
        expect(answer, wire.ok(renewed=True), why="a spy renews its lease")
        self.led = Leader(self.node_id, self.endpoint, term, answer.expires_at or int(time.time() * 1000) + ttl)

    async def _keep_leading(self, node: str, term: int) -> None:
        while True:
            await asyncio.sleep(self.lockd.T.renew_interval)
            await self._renew(node, term)

    async def stop_leading(self) -> Leader:
        """Stops renewing; returns the last lease, which expires by itself."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.gather(self._leading, return_exceptions=True)
            self._leading = None
        return self.led

    def got_from(self, sender: str | None, path: str, *, since: Moment | None = None) -> list[Call]:
        """Returns the calls on this path, from a moment on, by this node-id (None: by anybody)."""
        return self.got(path, since=since, where=lambda call: sender in (None, call.node_id))


async def spies(lockd: "Lockd", count: int, *, hosts: tuple[str, ...] = ("*",)) -> list[Spy]:
    """Opens `count` spies; returns them in the sort order of their endpoints."""
    made = [Spy(lockd, lockd.authority.server(name=f"spy{number}", hosts=hosts)) for number in range(1, count + 1)]
    for spy in made:
        await spy.open()
        lockd.context.stack.push_async_callback(spy.close)
    return sorted(made, key=lambda spy: spy.endpoint)
