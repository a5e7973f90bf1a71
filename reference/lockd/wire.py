"""The wire form of answers and requests: JSON objects, and one envelope for every refusal."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from holdfast.reference.shared.bodies import BadBody, is_unicode, json_object, read_body

LARGEST_BODY = 1 << 20
LARGEST_TERM = (1 << 64) - 1


class Refusal(Exception):  # noqa: N818  # an answer, not a failure of the node
    def __init__(self, status: int, code: str, detail: str = "", leader_endpoint: str = "") -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.leader_endpoint = leader_endpoint

    def body(self) -> dict[str, Any]:
        return present({"error": self.code, "detail": self.detail, "leader_endpoint": self.leader_endpoint})


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields without those that are zero or empty, which the wire form leaves out."""
    return {name: value for name, value in fields.items() if value}


def answer(body: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=json.dumps(body).encode() + b"\n", status=status, content_type="application/json")


async def read_object(request: web.BaseRequest) -> dict[str, Any]:
    """Reads the JSON object of a request; an empty body is an object without fields."""
    try:
        raw = await read_body(request, LARGEST_BODY)
        return json_object(raw) if raw.strip() else {}
    except BadBody as error:
        raise Refusal(error.status, "invalid_body", str(error)) from None


def text_of(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not is_unicode(value):
        raise Refusal(400, "invalid_body", f"{name} must be a string.")
    return value.strip()


def number_of(body: Mapping[str, Any], name: str) -> int:
    value = whole(body.get(name, 0))
    if value is None or abs(value) > LARGEST_TERM:
        raise Refusal(400, "invalid_body", f"{name} must be a whole number.")
    return value


def whole(value: Any) -> int | None:
    """Returns a whole number of JSON, where 1.0 and 1e0 are 1 as well; None for all else, and 0 for null."""
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def term_of(body: Mapping[str, Any], name: str = "term") -> int:
    term = number_of(body, name)
    if term < 0:
        raise Refusal(400, "invalid_body", f"{name} must not be negative.")
    return term


def list_of(body: Mapping[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Refusal(400, "invalid_body", f"{name} must be an array.")
    return value
