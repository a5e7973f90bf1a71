"""A spy: a member of the cluster that the suite itself plays, so that a check sees what nodes send to each other.

To the node under test it is a peer: it has a server certificate with a node-id of its own, listens with required client
certificates, joins, votes and, if the check wants it, leads. To the check it is a stub (`conformance/shared/stub.py`):
a record of calls, each with the caller's certificate, and a script. Without a script it votes as a sound peer does
(`ballot`). Registry changes that it has accepted are kept in `kept`, so that a check can see whether the node took one
back.

What a spy asks of a node, so that it is a member or leads, prepares a check; it is judged by the rows that own it, and
by no other. It should answer within a quarter of the nodes' call timeout; what it answered later excuses a finding.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from cryptography import x509

from holdfast.check.finding import Finding, expect
from holdfast.check.timeline import Moment
from holdfast.check.x509 import uris_of, usages_of
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.ballot import Ballot
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.identities import Identity, server_ids
from holdfast.conformance.lockd.wire import Leader
from holdfast.conformance.shared.http_stub import HttpCall, HttpStub
from holdfast.conformance.shared.stub import Reply, described

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

    @property
    def term(self) -> int:
        return wire.number(self.body.get("term"))

    @property
    def backend(self) -> str:
        return str(self.body.get("backend_hash"))

    def marked(self, header: str) -> bool:
        """Whether it carries this header; a blank value is none."""
        return bool(self.headers.get(header, "").strip())

    def says(self, wanted: Mapping[str, Any], why: str) -> None:
        """Raises Finding unless these fields of its body have these values."""
        if not all(wire.same(name, self.body.get(name), value) for name, value in wanted.items()):
            raise Finding([" ".join(described(wanted))], self.describe(), why)

    def comes_from(self, node_id: str, why: str) -> None:
        """Raises Finding unless it came under the server certificate of this node-id."""
        if self.node_id != node_id:
            raise Finding([f"a call under spiffe://lockd/server/{node_id}"], self.describe(), why)

    def describe(self) -> str:
        return f"{super().describe()} from {', '.join(self.uris) or 'nobody'}"


class Spy(HttpStub[Call]):
    call: ClassVar[type[HttpCall]] = Call

    def __init__(self, lockd: "Lockd", identity: Identity) -> None:
        deadline = lockd.T.peer_call_timeout * _DEADLINE_SHARE
        super().__init__(lockd, identity.name, deadline, identity.server_context)
        self.lockd = lockd
        self.identity = identity
        self.telling = (lockd.dialect.guard_header, lockd.dialect.replica_header)
        self.ballot = Ballot()
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
        """Returns what a friendly peer answers: everything is granted and confirmed that a sound voter may grant."""
        votes = {wire.ACQUIRE: self.ballot.acquire, wire.RENEW: self.ballot.renew}
        if refusal := votes[call.path](call.body) if call.path in votes else "":
            return refuses(refusal)
        if call.path == wire.RELEASE:
            self.ballot.release(call.body)
        return self._granted(call)

    def _granted(self, call: Call) -> Reply:
        body, now = call.body, int(time.time() * 1000)
        until = now + wire.number(body.get("ttl_ms"))
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
        pair = (call.backend, canonical(str(call.body.get("endpoint"))))
        if call.path == wire.REGISTER:
            self.kept.add(pair)
        elif call.path == wire.UNREGISTER:
            self.kept.discard(pair)

    async def announce(self, node: str) -> wire.Answer:
        """Announces itself once, and insists that it is accepted."""
        answer = await self.lockd.arrange("TC-MEMBER-01", wire.announce(self.endpoint), self.identity, node=node)
        self.lease_end = answer.expires_at or self.lease_end
        return answer

    async def join(self, *nodes: str) -> None:
        """Becomes a member at these nodes and announces itself once an interval until it leaves or falls silent."""
        for node in nodes:
            await self.announce(node)
            self._joined.append(self.lockd.beside(self._stay(node)))
            if not self.lockd.context.target.startable:
                self.lockd.context.stack.push_async_callback(self._take_leave, node)

    async def _stay(self, node: str) -> None:
        while True:
            await asyncio.sleep(self.lockd.T.membership_interval)
            answer = await self.lockd.call(wire.announce(self.endpoint), self.identity, node=node)
            self.lease_end = answer.expires_at or self.lease_end

    def fall_silent(self) -> None:
        """Stops announcing, so that its last membership lease expires."""
        for task in self._joined:
            task.cancel()
        self._joined.clear()

    async def leave(self, node: str) -> wire.Answer:
        """Stops announcing and leaves this node."""
        self.fall_silent()
        request = wire.leave(self.lockd.dialect.guard)
        return await self.lockd.arrange("TC-LEAVE-01", request, self.identity, node=node)

    async def _take_leave(self, node: str) -> wire.Answer:
        return await self.lockd.call(wire.leave(self.lockd.dialect.guard), self.identity, node=node)

    async def lead(self, node: str, term: int) -> Leader:
        """Becomes the valid leader of a node that has none: takes its vote, keeps renewing and reports the lease."""
        ttl = int(self.lockd.T.leader_ttl * 1000)
        await self.lockd.vote(self.node_id, term, ttl, node, endpoint=self.endpoint, who=self.identity)
        with self.lockd.context.arranging("TC-ELECT-05"):
            expect(await self._renew(node, term), wire.ok(renewed=True), why="a spy renews its lease")
        self.report(lambda: self.led)
        self._leading = self.lockd.beside(self._keep_leading(node, term))
        return self.led

    async def _renew(self, node: str, term: int) -> wire.Answer:
        ttl = int(self.lockd.T.leader_ttl * 1000)
        answer = await self.lockd.call(wire.renew(self.node_id, term, ttl), self.identity, node=node)
        if answer.ok:
            self.led = Leader(self.node_id, self.endpoint, term, answer.expires_at or int(time.time() * 1000) + ttl)
        return answer

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

    async def awaits(
        self,
        owner: str,
        path: str,
        bound: str,
        *,
        since: Moment | None = None,
        where: Callable[[Call], bool] = lambda _call: True,
        what: str = "",
    ) -> Call:
        """Waits for a call that only prepares the check; its time is judged only in a check of the row that owns it."""
        with self.lockd.context.arranging(owner):
            judged = self.lockd.judges(owner)
            return await self.receives(path, bound, since=since, where=where, what=what, judged=judged)

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
