"""API layer: intent only (3.1). AuthN -> AuthZ -> Validate -> Idempotency -> Persist -> Publish -> 202.

`stages` is that line as data. In phase 1 (section 4) the API takes the service lease after the validation and before
the idempotency, so that of two identical starts one is refused; in phase 2 it touches no lease.
"""

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from holdfast.reference.intents.payloads import START, STOP, Body, Intent
from holdfast.reference.intents.principals import WRITE
from holdfast.reference.intents.problems import Refusal, answer
from holdfast.reference.intents.settings import Token
from holdfast.reference.intents.store import AWAY, Accepted, Record
from holdfast.reference.shared.bodies import BadBody, read_body

if TYPE_CHECKING:
    from holdfast.reference.intents.api import Api


@dataclass
class Call:
    """One request on its way through the stages."""

    request: web.BaseRequest
    request_id: str
    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    principal: Token | None = None
    body: Body = field(default_factory=dict)
    intent: Intent = field(default_factory=lambda: Intent(START))
    outcome: Accepted | None = None
    lease: str = ""

    def record(self) -> Record:
        """Returns the intent as the fields of a session record."""
        intent = self.intent
        return {
            "sessionId": self.session_id,
            "mode": "RECORDING" if intent.vod else "LIVE",
            "serviceRef": intent.service_ref,
            "recordingId": intent.recording_id,
            "profileID": intent.profile,
            "startMs": str(intent.start_ms),
            "correlationId": intent.correlation_id,
        }


Stage = Callable[[Call], Awaitable[None]]


class Acceptance:
    def __init__(self, node: "Api") -> None:
        self.node = node
        self.phase1 = node.settings.phase1

    async def post(self, request: web.BaseRequest, request_id: str) -> web.Response:
        call = Call(request, request_id)
        for stage in self.stages():
            await stage(call)
        return self.respond(call)

    def stages(self) -> Sequence[Stage]:
        checks = (self.guard, self.authenticate, self.authorize, self.decode, self.validate)
        return (*checks, self.dedup_lease, self.record) if self.phase1 else (*checks, self.record)

    async def guard(self, call: Call) -> None:
        peer = call.request.remote or ""
        self.node.guard.check(peer, call.request.headers)

    async def authenticate(self, call: Call) -> None:
        authorization = call.request.headers.get("Authorization", "")
        call.principal = self.node.principals.authenticate(authorization, dict(call.request.query))

    async def authorize(self, call: Call) -> None:
        if call.principal is not None:
            self.node.principals.authorize(call.principal, WRITE)

    async def decode(self, call: Call) -> None:
        try:
            raw = await read_body(call.request, self.node.settings.body_max_bytes)
        except BadBody as error:
            code = "PAYLOAD_TOO_LARGE" if error.status == 413 else "INVALID_INPUT"
            raise Refusal(code, details=str(error)) from None
        call.body = self.node.payloads.parse(raw)

    async def validate(self, call: Call) -> None:
        call.intent = self.node.payloads.validate(call.body)

    async def dedup_lease(self, call: Call) -> None:
        """Phase 1: takes the channel for the session to be; 409 if another session holds it."""
        if call.intent.type == STOP or call.intent.vod:
            return
        lease = self.node.leases.key_service(call.record())
        if not await self.node.leases.acquire(lease, call.session_id):
            self.node.metrics.intent(call.intent.type, "conflict")
            raise self.conflict()
        call.lease = lease

    def conflict(self) -> Refusal:
        return Refusal("LEASE_BUSY", headers={"Retry-After": str(self.node.settings.retry_after)})

    async def record(self, call: Call) -> None:
        """Idempotency, persist, publish: one step of the store. A lease that turns out needless is given back."""
        try:
            call.outcome = await self.persist(call)
        except AWAY:
            self.node.metrics.intent(call.intent.type, "store_error")
            await self.give_back(call)
            raise
        if not call.outcome.made:
            await self.give_back(call)

    async def give_back(self, call: Call) -> None:
        if call.lease:
            await self.node.leases.release(call.lease, call.session_id)

    async def persist(self, call: Call) -> Accepted:
        if call.intent.type == STOP:
            await self.node.store.request_stop(call.intent.session_id, self.stop_event(call))
            return Accepted(True, call.intent.session_id, call.intent.correlation_id)
        key, candidates = self.keys_of(call)
        session = {**call.record(), "bucket": self.node.keys.bucket(call.intent), "idemKey": key}
        return await self.node.store.accept(candidates, session, self.start_event(call))

    def keys_of(self, call: Call) -> tuple[str, list[str]]:
        """Returns the key of a new session, and those under which a known one is looked up."""
        return self.node.keys.current(call.intent), self.node.keys.candidates(call.intent)

    def start_event(self, call: Call) -> Record:
        """Returns the StartSessionEvent (3.1 step 5), which names all that a worker needs."""
        intent = call.intent
        data: dict[str, str | int] = {
            "type": "session.start",
            "sessionId": call.session_id,
            "serviceRef": intent.service_ref,
            "profileId": intent.profile,
            "correlationId": intent.correlation_id,
            "requestedAtUnix": int(time.time()),
        }
        if intent.vod:
            data |= {"recordingId": intent.recording_id, "startMs": intent.start_ms}
        return {"type": "session.start", "data": json.dumps(data)}

    def stop_event(self, call: Call) -> Record:
        intent = call.intent
        data = {
            "type": "session.stop",
            "sessionId": intent.session_id,
            "reason": "R_CLIENT_STOP",
            "correlationId": intent.correlation_id,
            "requestedAtUnix": int(time.time()),
        }
        return {"type": "session.stop", "data": json.dumps(data)}

    def respond(self, call: Call) -> web.Response:
        """Returns 202 with the session's id, whether it is new or found."""
        outcome = call.outcome or Accepted(True, call.session_id, "")
        self.node.metrics.accepted(call.intent.type, made=outcome.made)
        event = "intent.accepted" if outcome.made else "intent.replayed"
        self.node.events.emit(event, type=call.intent.type, sessionId=outcome.session_id, requestId=call.request_id)
        return answer(self.body(call, outcome), self.status(outcome))

    def status(self, outcome: Accepted) -> int:  # noqa: ARG002  # every outcome is 202; a seam
        return 202

    def body(self, call: Call, outcome: Accepted) -> dict[str, str]:
        status = "accepted" if outcome.made else "idempotent_replay"
        body = {"sessionId": outcome.session_id, "requestId": call.request_id, "status": status}
        return {**body, "correlationId": outcome.correlation_id} if outcome.correlation_id else body
