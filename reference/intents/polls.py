"""What a client sees of a session (3.4 UX): its record by id, and the list for administrators."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

from holdfast.reference.intents.principals import ADMIN, READ
from holdfast.reference.intents.problems import Refusal, answer, invalid
from holdfast.reference.intents.store import Record

if TYPE_CHECKING:
    from holdfast.reference.intents.api import Api

TERMINAL = frozenset({"STOPPED", "FAILED", "CANCELLED"})
MOST = 1000
_ID = re.compile(r"[A-Za-z0-9_-]+")


class Polls:
    def __init__(self, node: "Api") -> None:
        self.node = node

    async def one(self, request: web.BaseRequest, session_id: str, request_id: str) -> web.Response:
        self.admit(request, READ)
        if not _ID.fullmatch(session_id):
            raise invalid("A session id has letters, digits, dashes and underscores only.")
        record = await self.load(session_id)
        if record is None:
            raise Refusal("SESSION_NOT_FOUND")
        if record["state"] in TERMINAL:
            raise self.gone(record)
        return answer({**self.render_session(record), "requestId": request_id})

    async def load(self, session_id: str) -> Record | None:
        return await self.node.store.session(session_id)

    async def all(self, request: web.BaseRequest) -> web.Response:
        self.admit(request, ADMIN)
        offset, limit = self.number(request, "offset", 0), min(self.number(request, "limit", 100), MOST)
        records = await self.node.store.sessions()
        page = [self.render_session(record) for record in records[offset : offset + limit]]
        pagination = {"offset": offset, "limit": limit, "total": len(records), "count": len(page)}
        return answer({"sessions": page, "pagination": pagination})

    def admit(self, request: web.BaseRequest, scope: str) -> None:
        self.node.guard.check(request.remote or "", request.headers)
        authorization = request.headers.get("Authorization", "")
        principal = self.node.principals.authenticate(authorization, dict(request.query))
        self.node.principals.authorize(principal, scope)

    def number(self, request: web.BaseRequest, name: str, default: int) -> int:
        text = request.query.get(name, "")
        if text and not re.fullmatch(r"\d{1,9}", text, re.ASCII):
            raise invalid(f"{name} must be a whole number, 0 or more.")
        return int(text) if text else default

    def gone(self, record: Record) -> Refusal:
        """Returns the answer for a session that has ended: it says how and why."""
        return Refusal(
            "session_gone",
            session=record["sessionId"],
            state=record["state"],
            reason=record["reason"],
            reason_detail=record.get("reasonDetail", ""),
        )

    def render_session(self, record: Record) -> dict[str, Any]:
        expires = int(record.get("leaseExpiresAtMs", "0")) / 1000
        return {
            "sessionId": record["sessionId"],
            "mode": record["mode"],
            "serviceRef": record["serviceRef"],
            "profile": record["profileID"],
            "state": record["state"],
            "reason": record["reason"],
            "reasonDetail": record.get("reasonDetail", ""),
            "correlationId": record["correlationId"],
            "updatedAtMs": int(record["updatedAtMs"]),
            "heartbeatIntervalSeconds": max(1, round(self.node.settings.renew_every)),
            "leaseExpiresAt": datetime.fromtimestamp(expires, UTC).isoformat(timespec="milliseconds"),
        }
