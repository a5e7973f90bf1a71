"""A spy: a member of ours. To the node under test it is a peer; to the check it is a script and a record.

It has a server certificate of its own node-id, listens with required client certificates, records what nodes send it
and answers by script. It answers within a deadline of its own: what it took longer is its own lag, is logged, and
excuses only findings that rest on this spy.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from cryptography import x509

from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.identities import Identity, server_ids, uris_of, usages_of
from holdfast.conformance.lockd.wire import Leader
from holdfast.finding import Finding, Inconclusive, expect
from holdfast.timeline import Moment

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

# A share of the nodes' own call timeout: a spy that answers later may be taken for an unreachable peer.
_DEADLINE_SHARE = 0.25
# To aiohttp zero means without limit.
_AT_ONCE = 0.001


@dataclass(frozen=True)
class Reply:
    """What a spy answers: a status and a body, after `hold` seconds; or it hangs up."""

    status: int = 200
    body: Mapping[str, Any] = field(default_factory=dict)
    hold: float = 0.0
    hangs_up: bool = False


def refuses(code: str) -> Reply:
    return Reply(wire.STATUS_OF[code], {"error": code})


BROKEN = Reply(500, {"error": "internal_error"})


@dataclass
class Call:
    """One call that a spy got, and when it had answered."""

    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    certificate: x509.Certificate | None
    answered: float | None = None

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
    def moment(self) -> Moment:
        return Moment(self.at, self.at)

    def describe(self) -> str:
        said = " ".join(f"{k}={v}" for k, v in self.body.items())
        return f"{self.method} {self.path} {said} from {', '.join(self.uris) or 'nobody'}"


Script = Reply | Callable[[Call], Reply]


class Spy:
    def __init__(self, lockd: "Lockd", identity: Identity) -> None:
        self.lockd = lockd
        self.identity = identity
        self.endpoint = ""
        self.calls: list[Call] = []
        self.script: dict[str, Script] = {}
        self.kept: set[tuple[str, str]] = set()
        self.worst_lag = 0.0
        self.lease_end = 0
        self._server: asyncio.Server | None = None
        self._handler: web.Server | None = None
        self._port = 0
        # Odd while it is open.
        self._opened = 0
        self._joined: list[asyncio.Task[None]] = []
        self._leading: asyncio.Task[None] | None = None
        self.led = Leader()

    @property
    def node_id(self) -> str:
        return self.identity.node_id

    # ------------------------------------------------------------- its port

    async def open(self) -> None:
        """Listen; after a `close` again on the same port."""
        harness = self.lockd.context.target.harness
        self._opened += 1
        self._handler = web.Server(partial(self._serve, self._opened))
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._handler, harness["bind"], self._port, ssl=self.identity.server_context
        )
        self._port = self._server.sockets[0].getsockname()[1]
        self.endpoint = f"https://{harness['advertise']}:{self._port}"

    async def close(self) -> Moment:
        """Gone without a word: the port is closed and every connection cut."""
        asked = time.monotonic()
        if self._server is not None and self._handler is not None:
            self._opened += 1
            self._server.close()
            await self._handler.shutdown(_AT_ONCE)
            self._server = self._handler = None
        return Moment(asked, time.monotonic())

    async def _serve(self, opened: int, request: web.BaseRequest) -> web.StreamResponse:
        if opened != self._opened:  # its TLS handshake was under way when the port was closed
            return _hung_up(request)
        call = Call(
            time.monotonic(),
            request.method,
            request.path,
            dict(request.headers),
            _fields(wire.parse_body(await request.read())[0]),
            _certificate(request),
        )
        self.calls.append(call)
        self.lockd.context.transcript.add("⇢", lambda: f"{self.identity.name}: {call.describe()}")
        reply = self._reply(call)
        if reply.hold:
            await asyncio.sleep(reply.hold)
        self._note_lag(call, reply.hold)
        if reply.hangs_up:
            return _hung_up(request)
        call.answered = time.monotonic()
        return web.json_response(dict(reply.body), status=reply.status)

    def _note_lag(self, call: Call, hold: float) -> None:
        lag = time.monotonic() - call.at - hold
        self.worst_lag = max(self.worst_lag, lag)
        if lag > self.deadline:
            self.lockd.context.transcript.note(f"{self.identity.name} answered {call.path} {lag:.2f} s late")

    @property
    def deadline(self) -> float:
        return self.lockd.T.peer_call_timeout * _DEADLINE_SHARE

    # ------------------------------------------------------------- its script

    def on(self, path: str, script: Script) -> None:
        self.script[path] = script

    def refuse_votes(self) -> None:
        self.on(wire.ACQUIRE, refuses("tc_lease_active"))
        self.on(wire.RENEW, refuses("tc_lease_active"))

    def grant_votes(self) -> None:
        self.script.pop(wire.ACQUIRE, None)
        self.script.pop(wire.RENEW, None)

    def hold_votes(self, seconds: float) -> None:
        """Grant, but late."""
        self.on(wire.ACQUIRE, lambda call: Reply(200, self._default(call), hold=seconds))

    def report_term(self, term: int) -> None:
        self.on(wire.LEADER, Reply(200, {"term": term}))

    def report(self, leader: Callable[[], Leader]) -> None:
        self.on(wire.LEADER, lambda _call: Reply(200, leader().fields()))

    def _reply(self, call: Call) -> Reply:
        script = self.script.get(call.path)
        reply = script(call) if callable(script) else script
        if reply is None:
            reply = Reply(200, self._default(call))
        if reply.status == 200 and not reply.hangs_up:
            self._keep(call)
        return reply

    def _default(self, call: Call) -> dict[str, Any]:
        said, now = call.body, int(time.time() * 1000)
        until = now + int(said.get("ttl_ms") or 0)
        candidate = {"leader_id": said.get("candidate_id"), "leader_endpoint": said.get("candidate_endpoint")}
        listed = {"endpoints": [self.endpoint], "updated_at_unix": now}
        stored: dict[str, Any] = {"backend_hash": said.get("backend_hash"), "endpoints": [], "updated_at_unix": now}
        applied = {"txn_id": said.get("txn_id"), "state": call.path.rpartition("/")[2]}
        answers: dict[str, dict[str, Any]] = {
            wire.ANNOUNCE: listed,
            wire.LEAVE: listed,
            wire.ACQUIRE: {"granted": True, **candidate, "term": said.get("term"), "expires_at": until},
            wire.RENEW: {"renewed": True, **said, "expires_at": until},
            wire.RELEASE: {"released": True},
            wire.REGISTER: stored,
            wire.UNREGISTER: stored,
            wire.DECIDE: {"txn_id": said.get("txn_id"), "state": said.get("state")},
            wire.COMMIT: applied,
            wire.ROLLBACK: applied,
        }
        return answers.get(call.path, {})

    def _keep(self, call: Call) -> None:
        """Registry changes that it has accepted, so that an undo can be seen."""
        pair = (str(call.body.get("backend_hash")), str(call.body.get("endpoint")))
        if call.path == wire.REGISTER:
            self.kept.add(pair)
        elif call.path == wire.UNREGISTER:
            self.kept.discard(pair)

    # ------------------------------------------------------------- as a member

    async def announce(self, node: str) -> wire.Answer:
        answer = await self.lockd.call(wire.announce(self.endpoint), self.identity, node=node)
        self.lease_end = answer.expires_at or self.lease_end
        return answer

    async def join(self, *nodes: str) -> None:
        """Be a member there, once an interval, until it leaves or falls silent."""
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
        """No more announces; its last lease runs out."""
        for task in self._joined:
            task.cancel()
        self._joined.clear()

    async def leave(self, node: str) -> wire.Answer:
        self.fall_silent()
        answer = await self._take_leave(node)
        expect(answer, wire.ok(), why="a spy leaves")
        return answer

    async def _take_leave(self, node: str) -> wire.Answer:
        return await self.lockd.call(wire.leave(self.lockd.dialect.guard), self.identity, node=node)

    # ------------------------------------------------------------- as leader

    async def lead(self, node: str, term: int) -> Leader:
        """Be the valid leader of a node that has none: take its vote, renew it and report the lease."""
        ttl = int(self.lockd.T.leader_ttl * 1000)
        request = wire.acquire(self.node_id, self.endpoint, term, ttl)

        async def granted() -> bool:
            answer = await self.lockd.call(request, self.identity, node=node)
            expect(answer, wire.ok(granted=True), wire.refused("tc_lease_active"), why="a spy asks for a vote")
            return answer.ok

        await self.lockd.T.until(granted, give_up=2 * self.lockd.T.lease_settled_max, what="a vote for the spy")
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
        """No more renewals; the lease that it leaves behind."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.gather(self._leading, return_exceptions=True)
            self._leading = None
        return self.led

    # ------------------------------------------------------------- its record

    def got(self, path: str, *, since: Moment | None = None, sender: str | None = None) -> list[Call]:
        """Calls on this route, from a moment on, of this node-id."""
        start = since.lo if since else 0.0
        return [
            call
            for call in self.calls
            if call.path == path and call.at >= start and (sender is None or call.node_id == sender)
        ]

    async def receives(
        self,
        path: str,
        bound: str,
        *,
        since: Moment | None = None,
        where: Callable[[Call], bool] = lambda _call: True,
        count: int = 1,
        times: float = 1.0,
        what: str = "",
    ) -> Call:
        """The call, or the last of so many, judged against our bound, which counts so many times."""
        T = self.lockd.T
        start = since or T.now()
        name = what or f"{path} at {self.identity.name}"

        async def look() -> Call | None:
            found = [call for call in self.got(path, since=start) if where(call)]
            return found[count - 1] if len(found) >= count else None

        with self.excused():
            call, _ = await T.until(look, give_up=2 * times * T.timings.of(bound).seconds, since=start, what=name)
        T.at_most(bound, since=start, seen=call.moment, times=times, what=name)
        return call

    def excused(self) -> contextlib.AbstractContextManager[None]:
        return _Excuse(self)


class _Excuse(contextlib.AbstractContextManager[None]):
    """What is found here rests on this spy: if it lagged itself, nothing is proven."""

    def __init__(self, spy: Spy) -> None:
        self._spy = spy

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Finding) and self._spy.worst_lag > self._spy.deadline:
            name, lag = self._spy.identity.name, self._spy.worst_lag
            raise Inconclusive(f"{name} itself lagged {lag:.2f} s: {error}") from error


async def spies(lockd: "Lockd", count: int, *, hosts: tuple[str, ...] = ("*",)) -> list[Spy]:
    """So many open spies, in the sort order of their endpoints."""
    made = [Spy(lockd, lockd.authority.server(name=f"spy{number}", hosts=hosts)) for number in range(1, count + 1)]
    for spy in made:
        await spy.open()
        lockd.context.stack.push_async_callback(spy.close)
    return sorted(made, key=lambda spy: spy.endpoint)


async def spy_members(lockd: "Lockd", node: str, count: int, *, grant: bool = True) -> list[Spy]:
    """So many spies as members of a node, that grant its votes or refuse them."""
    made = await spies(lockd, count)
    for spy in made:
        if not grant:
            spy.refuse_votes()
        await spy.join(node)
    return made


async def leaderless(lockd: "Lockd", count: int = 1) -> tuple[str, list[Spy]]:
    """A lone node without a leader: its spy members refuse every vote, so that its quorum is never reached."""
    node = lockd.lone
    made = await spy_members(lockd, node, count, grant=False)
    await lockd.without_leader(node)
    return node, made


async def spy_leader(lockd: "Lockd", term: int = 1000, count: int = 1) -> tuple[str, list[Spy]]:
    """A lone node that follows the first of its spy members."""
    node, made = await leaderless(lockd, count)
    await made[0].lead(node, term)
    seen = await lockd.leader(node)
    expect(seen, wire.ok(leader_endpoint=made[0].endpoint, term=term), why="the node follows the spy")
    return node, made


def _hung_up(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _fields(body: Any) -> Mapping[str, Any]:
    return body if isinstance(body, dict) else {}


def _certificate(request: web.BaseRequest) -> x509.Certificate | None:
    tls = request.get_extra_info("ssl_object")
    der = tls.getpeercert(binary_form=True) if tls is not None else None
    return x509.load_der_x509_certificate(der) if der else None
