"""Routes of the API process, and the one place where a refusal becomes an answer."""

import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import unquote

from aiohttp import web

from holdfast.reference.intents.problems import Refusal, answer, problem
from holdfast.reference.intents.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.intents.api import Api

INTENTS = "/api/v3/intents"
SESSIONS = "/api/v3/sessions"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Http:
    def __init__(self, node: "Api") -> None:
        self.node = node

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers.get("X-Request-ID", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())
        reply = await self.reply(request, request_id)
        reply.headers["X-Request-ID"] = request_id
        return reply

    async def reply(self, request: web.BaseRequest, request_id: str) -> web.Response:
        try:
            return await self.route(request, request_id)
        except Refusal as refusal:
            return self.refused(refusal, request, request_id)
        except AWAY:
            return self.refused(self.unavailable(), request, request_id)

    def unavailable(self) -> Refusal:
        """An intent that could not be recorded is not accepted."""
        return Refusal("SERVICE_UNAVAILABLE", headers={"Retry-After": str(self.node.settings.retry_after)})

    def refused(self, refusal: Refusal, request: web.BaseRequest, request_id: str) -> web.Response:
        if request.path == INTENTS:
            self.node.events.emit("intent.rejected", status=refusal.status, code=refusal.code, requestId=request_id)
        reply = problem(refusal.document(request_id, request.path), refusal.status)
        reply.headers.update(refusal.headers)
        return reply

    async def route(self, request: web.BaseRequest, request_id: str) -> web.Response:
        path = request.raw_path.partition("?")[0]
        if path == INTENTS:
            self.allow(request, "POST")
            return await self.node.acceptance.post(request, request_id)
        if path == SESSIONS:
            self.allow(request, "GET")
            return await self.node.polls.all(request)
        if path.startswith(f"{SESSIONS}/"):
            self.allow(request, "GET")
            session_id = unquote(path.removeprefix(f"{SESSIONS}/"))
            return await self.node.polls.one(request, session_id, request_id)
        return self.operate(request, path)

    def operate(self, request: web.BaseRequest, path: str) -> web.Response:
        """Answers what an operator asks: whether the process lives, and whether it can serve."""
        if path not in {"/healthz", "/readyz"}:
            raise Refusal("NOT_FOUND", "There is no such call.")
        self.allow(request, "GET")
        if path == "/readyz" and not self.node.ready():
            raise self.unavailable()
        return answer({"status": "ok"})

    def allow(self, request: web.BaseRequest, method: str) -> None:
        if request.method != method:
            raise Refusal("METHOD_NOT_ALLOWED", headers={"Allow": method})
