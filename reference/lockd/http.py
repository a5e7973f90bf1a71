"""The HTTP routes of a node: who may call them, and which fields they take.

The rules of the spec are elsewhere, so that a mutant cannot break two requirements at once.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from holdfast.reference.lockd.identity import Caller
from holdfast.reference.lockd.ids import uuid7
from holdfast.reference.lockd.slot import Held
from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal, answer, number_of, present, read_object, term_of, text_of

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

Body = Mapping[str, Any]
Handler = Callable[["Call"], Awaitable[Mapping[str, Any]]]
CORRELATION = "X-Correlation-Id"
LONGEST_TTL_MS = 10**10
_CORRELATION = re.compile(r"[\x21-\x7e]{1,128}")


class Call:
    def __init__(self, request: web.BaseRequest, caller: Caller | None) -> None:
        self.path = request.path
        self.headers = request.headers
        self.query = request.query
        self.caller = caller
        self.body: Body = {}


class Http:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.client_routes: dict[str, Handler] = {
            "/v1/tc/leader": self.leader,
            "/v1/tc/lease/acquire": self.acquire,
            "/v1/tc/lease/renew": self.renew,
            "/v1/tc/lease/release": self.release,
            "/v1/tc/cluster/list": self.members,
            "/v1/tc/rm/list": self.registry,
            "/v1/txn/decide": self.decide,
            "/v1/txn/commit": self.commit,
            "/v1/txn/rollback": self.rollback,
            "/v1/txn/replay": self.replay,
        }
        self.server_routes: dict[str, Handler] = {
            "/v1/tc/cluster/announce": self.announce,
            "/v1/tc/cluster/leave": self.leave,
            "/v1/tc/rm/register": self.register,
            "/v1/tc/rm/unregister": self.unregister,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        reply = await self.reply(request)
        given = request.headers.get(CORRELATION, "")
        reply.headers[CORRELATION] = given if _CORRELATION.fullmatch(given) else uuid7()
        if self.node.stopping.is_set():
            reply.headers["Shutdown-Imminent"] = "true"
        return reply

    async def reply(self, request: web.BaseRequest) -> web.Response:
        try:
            return await self.route(request)
        except Refusal as refusal:
            return self.refused(refusal)
        except StoreUnavailable as error:
            return self.refused(Refusal(503, self.unavailable_code(request.path), str(error)))

    def refused(self, refusal: Refusal) -> web.Response:
        return answer(refusal.body(), refusal.status)

    def unavailable_code(self, path: str) -> str:
        if path.startswith("/v1/tc/rm/"):
            return "tc_rm_unavailable"
        return "txn_coordinator_unavailable" if path.startswith("/v1/txn/") else "tc_cluster_unavailable"

    async def route(self, request: web.BaseRequest) -> web.Response:
        if request.path in {"/healthz", "/readyz"}:
            return web.Response()
        call = Call(request, self.caller_of(request))
        if (handler := self.client_routes.get(request.path)) is not None:
            self.node.identity.authorize_client(call.caller, call.path)
        elif (handler := self.server_routes.get(request.path)) is not None:
            self.node.identity.authorize_server(call.caller, call.path)
        else:
            raise Refusal(404, "not_found", "There is no such call.")
        call.body = await read_object(request)
        return answer(await handler(call))

    def caller_of(self, request: web.BaseRequest) -> Caller | None:
        """Reads the caller from the certificate of the connection; nothing in the request can name it."""
        tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        der = tls.getpeercert(binary_form=True) if tls is not None else None
        return self.node.identity.caller_of(der) if der else None

    # Leader and leases.

    async def leader(self, call: Call) -> Body:  # noqa: ARG002  # the form of all handlers
        self.node.election.require()
        return self.node.election.view()

    async def acquire(self, call: Call) -> Body:
        candidate, endpoint = text_of(call.body, "candidate_id"), text_of(call.body, "candidate_endpoint")
        if not candidate:
            raise Refusal(400, "missing_candidate_id")
        if not endpoint:
            raise Refusal(400, "missing_candidate_endpoint")
        term, ttl = self.term_and_ttl(call.body)
        self.node.election.require()
        return {"granted": True, **self.lease(self.node.slot.acquire(candidate, endpoint, term, ttl))}

    async def renew(self, call: Call) -> Body:
        leader = self.leader_id(call.body)
        term, ttl = self.term_and_ttl(call.body)
        self.node.election.require()
        return {"renewed": True, **self.lease(self.node.slot.renew(leader, term, ttl))}

    async def release(self, call: Call) -> Body:
        leader, term = self.leader_id(call.body), self.term(call.body)
        self.node.election.require()
        self.node.slot.release(leader, term)
        self.node.election.wake.set()
        return {"released": True}

    def leader_id(self, body: Body) -> str:
        if not (found := text_of(body, "leader_id")):
            raise Refusal(400, "missing_leader_id")
        return found

    def term(self, body: Body) -> int:
        if not (term := term_of(body)):
            raise Refusal(400, "invalid_term", "term must be above 0.")
        return term

    def term_and_ttl(self, body: Body) -> tuple[int, float]:
        term, ttl = self.term(body), number_of(body, "ttl_ms")
        if not 0 < ttl <= LONGEST_TTL_MS:
            raise Refusal(400, "invalid_ttl", "ttl_ms must be above 0.")
        return term, ttl / 1000

    def lease(self, held: Held) -> Body:
        return {
            "leader_id": held.leader_id,
            "leader_endpoint": held.endpoint,
            "term": held.term,
            "expires_at": held.expires_at,
        }

    # Membership.

    async def announce(self, call: Call) -> Body:
        endpoint = self.announced_endpoint(call)
        identity = self.identity_of(call)
        async with self.node.leave.changing:
            lease = await self.node.members.announce(identity, endpoint)
            self.node.leave.announced(identity)
        await self.node.leave.membership_changed()
        active = await self.node.members.active()
        times = {"updated_at_unix": lease.updated_at_unix, "expires_at_unix": lease.expires_at_unix}
        return {"endpoints": list(active.endpoints), **times}

    def announced_endpoint(self, call: Call) -> str:
        given = text_of(call.body, "self_endpoint")
        if not given:
            raise Refusal(400, "missing_self_endpoint")
        endpoint = self.node.members.normalize_endpoint(given)
        if endpoint is None:
            raise Refusal(400, "invalid_self_endpoint", "self_endpoint must be an http(s) URL.")
        return endpoint

    def identity_of(self, call: Call) -> str:
        return self.node.identity.member_identity(call.caller)

    async def leave(self, call: Call) -> Body:
        await self.node.leave.requested(self.identity_of(call), call.headers)
        return await self.members(call)

    async def members(self, call: Call) -> Body:  # noqa: ARG002  # the form of all handlers
        active = await self.node.members.active()
        return {"endpoints": list(active.endpoints), **present({"updated_at_unix": active.updated_at_unix})}

    # RM registry.

    async def register(self, call: Call) -> Body:
        return await self.node.registry.requested("register", *self.pair(call), call.headers)

    async def unregister(self, call: Call) -> Body:
        return await self.node.registry.requested("unregister", *self.pair(call), call.headers)

    def pair(self, call: Call) -> tuple[str, str]:
        backend, given = text_of(call.body, "backend_hash"), text_of(call.body, "endpoint")
        if not backend:
            raise Refusal(400, "missing_backend_hash")
        if not given:
            raise Refusal(400, "missing_endpoint")
        endpoint = self.node.members.normalize_endpoint(given)
        if endpoint is None:
            raise Refusal(400, "invalid_endpoint", "endpoint must be an http(s) URL.")
        return backend, endpoint

    async def registry(self, call: Call) -> Body:  # noqa: ARG002  # the form of all handlers
        return await self.node.registry.listing()

    # Transactions.

    async def decide(self, call: Call) -> Body:
        return await self.node.txns.decide(call.body, call.headers, call.caller)  # type: ignore[no-any-return]  # JSON

    async def commit(self, call: Call) -> Body:
        return await self.node.txns.apply(call.body, "commit", call.caller)  # type: ignore[no-any-return]  # JSON

    async def rollback(self, call: Call) -> Body:
        return await self.node.txns.apply(call.body, "rollback", call.caller)  # type: ignore[no-any-return]  # JSON

    async def replay(self, call: Call) -> Body:
        return await self.node.txns.replay(call.body, call.caller)  # type: ignore[no-any-return]  # JSON
