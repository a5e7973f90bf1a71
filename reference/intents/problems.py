"""Refusals as RFC 9457 problem documents, with the codes of the public implementation."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

_TITLES = {
    "INVALID_INPUT": (400, "error/invalid_input", "Invalid input parameters"),
    "UNAUTHORIZED": (401, "error/unauthorized", "Authentication required"),
    "FORBIDDEN": (403, "error/forbidden", "Access denied"),
    "NOT_FOUND": (404, "error/not_found", "Not found"),
    "SESSION_NOT_FOUND": (404, "error/session_not_found", "session not found"),
    "METHOD_NOT_ALLOWED": (405, "system/method_not_allowed", "Method Not Allowed"),
    "LEASE_BUSY": (409, "error/lease_busy", "No tuner available; retry later"),
    "session_gone": (410, "urn:xg2g:error:session:gone", "Session Gone"),
    "PAYLOAD_TOO_LARGE": (413, "error/payload_too_large", "Payload too large"),
    "SERVICE_UNAVAILABLE": (503, "error/service_unavailable", "Service temporarily unavailable"),
}
_dumps = json.JSONEncoder(separators=(",", ":")).encode


class Refusal(Exception):  # noqa: N818  # an answer, not an error
    """Refuses a call with one of the codes. `members` are added to the document, `headers` to the answer."""

    def __init__(self, code: str, detail: str = "", headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members

    @property
    def status(self) -> int:
        return _TITLES[self.code][0]

    def document(self, request_id: str, path: str) -> dict[str, Any]:
        status, kind, title = _TITLES[self.code]
        head = {"type": f"/problems/{kind}", "title": title, "status": status, "code": self.code}
        detail = {"detail": self.detail} if self.detail else {}
        return {**head, "requestId": request_id, "instance": path, **detail, **self.members}


def invalid(details: str) -> Refusal:
    """Returns the refusal of a payload, with the text that says what is wrong."""
    return Refusal("INVALID_INPUT", details=details)


def answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    return _json(body, status, "application/json; charset=utf-8")


def problem(body: Mapping[str, Any], status: int) -> web.Response:
    return _json(body, status, "application/problem+json")


def _json(body: Mapping[str, Any], status: int, kind: str) -> web.Response:
    return web.Response(body=_dumps(body).encode(), status=status, headers={"Content-Type": kind})
