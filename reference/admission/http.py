"""HTTP calls of a node: routes, and the wire form of a connection attempt.

A connection attempt of the wrong form is still an attempt: it is settled, logged and counted like any other, and
`malformed` only changes the HTTP status of a refusal that its form has caused. Every other call that is refused
raises `Refusal`, and a call that Redis does not answer in time becomes 503.
"""

import asyncio
import math
from collections.abc import Awaitable
from email.utils import formatdate
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import web

from holdfast.reference.admission.attempts import Attempt
from holdfast.reference.admission.rules import MESSAGES, plain
from holdfast.reference.admission.verdicts import Verdict
from holdfast.reference.admission.wire import Refusal, answer, read_object, refusal_body
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

BLAMED_ON_FORM = {
    "NO_ACTIVE_CHARACTER",
    "VERSION_MISMATCH",
    "INVALID_INSTANCE",
    "INVALID_RECONNECTION_TOKEN",
    "INVALID_REPLACE_TOKEN",
    "NOT_AUTHENTICATED",
}
NOBODY = "?"
"""Replaces an id or token of a form that none can have: it is never registered, so it is never found."""


class Http:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        reply = await self.reply(request)
        if self.node.settings.clock_offset:  # the date is that of this node's clock, even if it is wrong
            reply.headers["Date"] = formatdate(self.node.events.wall_clock(), usegmt=True)
        return reply

    async def reply(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self.route(request, segments(request.raw_path))
        except Refusal as refusal:
            return answer(refusal_body(refusal.reason, refusal.message), refusal.status)
        except (RedisAway, TimeoutError):
            return self.unavailable()

    async def route(self, request: web.BaseRequest, path: list[str]) -> web.StreamResponse:
        match path:
            case ["instances", instance_id, *rest]:
                return await self.instance_call(request, instance_id, [request.method, *rest])
            case ["admin", *rest]:
                return await self.limited(self.node.admin.route(request, rest))
            case ["metrics"] if request.method == "GET":
                return await self.metrics()
            case ["health"] if request.method == "GET":
                return self.health()
        raise Refusal(404, "NOT_FOUND", "There is no such call.")

    async def instance_call(self, request: web.BaseRequest, instance_id: str, call: list[str]) -> web.StreamResponse:
        if call == ["POST", "connect"]:
            return await self.connect(request, instance_id)
        if call == ["GET", "ws"]:
            return await self.node.sockets.serve(request, instance_id)
        others = {
            ("GET", "queue", "status"): self.node.follow_ups.status,
            ("POST", "disconnect"): self.node.follow_ups.disconnect,
            ("DELETE", "connect"): self.node.follow_ups.cancel,
            ("DELETE", "queue"): self.node.follow_ups.unqueue,
        }
        if (found := others.get(tuple(call))) is None:
            raise Refusal(404, "NOT_FOUND", "There is no such call.")
        return await self.limited(found(request, instance_id))

    async def limited(self, call: Awaitable[web.Response]) -> web.Response:
        """Ends a call after the deadline of an attempt, so that a stalled Redis holds no caller longer."""
        async with asyncio.timeout(self.node.settings.attempt_deadline):
            return await call

    def unavailable(self) -> web.Response:
        seconds = self.node.rules.retry_after("INTERNAL_ERROR")
        body = refusal_body("INTERNAL_ERROR") | {"retryAfterSeconds": seconds}
        return answer(body, 503, {"Retry-After": str(seconds)})

    def health(self) -> web.Response:
        now = int(self.node.events.wall_clock() * 1000)
        return answer({"status": "healthy", "node": self.node.settings.node, "time": now})

    async def metrics(self) -> web.Response:
        text = await self.node.metrics.scrape()
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def connect(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        """Reads and settles one attempt. A body that is complete already is read without a timer, which costs time."""
        attempt = self.received(request, instance_id)
        try:
            async with asyncio.timeout(None if request.content.is_eof() else self.node.settings.attempt_deadline):
                self.read_body(attempt, request, await read_object(request))
        except Refusal as refusal:
            attempt.malformed = refusal.status
        except TimeoutError:
            attempt.malformed = 408  # the deadline is over, so the attempt ends as timeout
        return self.answered(attempt, await self.node.attempts.settle(attempt))

    def received(self, request: web.BaseRequest, instance_id: str) -> Attempt:
        now = monotonic()
        user_id = self.node.identity.authenticate(request.headers.get("Authorization", ""))
        deadline = self.node.attempts.deadline_of(now)
        return Attempt(instance_id=instance_id, user_id=user_id, received=now, deadline=deadline)

    def read_body(self, attempt: Attempt, request: web.BaseRequest, body: dict[str, Any]) -> None:
        attempt.character_id = self.character_of(attempt, body.get("characterId"))
        attempt.build_ok = self.build_of(attempt, body.get("clientBuild"), request.headers.get("X-Client-Build"))
        attempt.reconnection_token = self.token_of(attempt, body.get("reconnectionToken"))
        attempt.replace_token = self.token_of(attempt, request.query.get("replaceToken"))

    def character_of(self, attempt: Attempt, value: Any) -> str:
        if value is None or value == "":
            return ""
        if not isinstance(value, str):
            attempt.malformed = 400
            return ""
        return value if self.node.rules.is_id(value) else NOBODY

    def build_of(self, attempt: Attempt, value: Any, header: str | None) -> bool:
        if value is not None and not isinstance(value, str):
            attempt.malformed, value = 400, ""
        if value is None and header is None:
            attempt.malformed = 400
        return self.node.rules.build_ok(value, header)

    def token_of(self, attempt: Attempt, value: Any) -> str | None:
        """Returns the token, None when there is none, or NOBODY for a malformed one, which is then not found."""
        if value is None:
            return None
        if isinstance(value, str) and self.node.rules.is_token(value):
            return value
        attempt.malformed = 400
        return NOBODY

    def answered(self, attempt: Attempt, verdict: Verdict) -> web.Response:
        body: dict[str, Any] = {"outcome": verdict["outcome"], "attemptId": attempt.attempt_id}
        self.add_outcome(body, verdict)
        retry_after = self.node.rules.retry_after(verdict.get("reason", ""), verdict.get("lockMs"))
        if retry_after is not None:
            body["retryAfterSeconds"] = retry_after
        status = self.status_of(attempt, verdict)
        headers = self.limiter_headers(verdict)
        if status in {429, 503}:
            headers["Retry-After"] = str(retry_after)
        return answer(body, status, headers)

    def add_outcome(self, body: dict[str, Any], verdict: Verdict) -> None:
        for name in (
            "sessionId",
            "reconnectionToken",
            "reconnected",
            "position",
            "depth",
            "reason",
            "replacementToken",
        ):
            if name in verdict:
                body[name] = verdict[name]
        if "reason" in verdict:
            body["message"] = verdict.get("message") or MESSAGES[verdict["reason"]]
        if "remaining" in verdict:
            body["remainingAttempts"] = verdict["remaining"]
        if verdict["outcome"] == "queued":
            body["pollAfterSeconds"] = self.node.rules.poll_after()

    def status_of(self, attempt: Attempt, verdict: Verdict) -> int:
        reason = verdict.get("reason")
        if reason == "RATE_LIMITED":
            return 429
        if reason == "INTERNAL_ERROR":
            return 503
        return attempt.malformed or 200 if reason in BLAMED_ON_FORM else 200

    def limiter_headers(self, verdict: Verdict) -> dict[str, str]:
        if "remaining" not in verdict:
            return {}
        settings = self.node.settings
        return {
            "X-RateLimit-Limit": str(settings.rate_failures),
            "X-RateLimit-Remaining": str(verdict["remaining"]),
            "X-RateLimit-Reset": str(math.ceil(verdict["resetMs"] / 1000)),
            "X-RateLimit-Window": str(plain(settings.rate_window)),
            "X-RateLimit-Policy": "sliding-window",
        }


def segments(raw_path: str) -> list[str]:
    """Returns the segments of the path, unquoted one by one, so that an escaped slash stays inside its segment."""
    path = raw_path.partition("?")[0]
    return [unquote(segment) if "%" in segment else segment for segment in path[1:].split("/")]
