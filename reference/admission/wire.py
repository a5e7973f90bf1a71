"""JSON in and out, for every HTTP call of a node."""

import json
from typing import Any

from aiohttp import web

from holdfast.reference.admission.rules import MESSAGES
from holdfast.reference.shared.bodies import BadBody, is_unicode, json_object, read_body

BODY_LIMIT = 64 * 1024

_dumps = json.JSONEncoder(separators=(",", ":")).encode
_JSON = {"Content-Type": "application/json"}


class Refusal(Exception):  # noqa: N818  # an answer, not an error
    """Refuses a call; `Http.reply` turns it into the answer."""

    def __init__(self, status: int, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.message = message or MESSAGES[reason]


def answer(body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=_dumps(body).encode(), status=status, headers={**headers, **_JSON} if headers else _JSON)


def refusal_body(reason: str, message: str | None = None) -> dict[str, Any]:
    return {"outcome": "failed", "reason": reason, "message": message or MESSAGES[reason]}


async def read_object(request: web.BaseRequest) -> dict[str, Any]:
    """Returns the body as a JSON object; raises Refusal for anything else."""
    if request.content_type != "application/json":
        raise Refusal(400, "INVALID_REQUEST", "The content type must be application/json.")
    try:
        return json_object(await read_body(request, BODY_LIMIT))
    except BadBody as error:
        raise Refusal(error.status, "INVALID_REQUEST", str(error)) from None


def text_of(body: dict[str, Any], name: str, *, most: int = 1000) -> str | None:
    """Returns a text field, or None when it is absent; raises Refusal for anything else."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > most or not is_unicode(value):
        raise Refusal(400, "INVALID_REQUEST", f"{name} must be a text of at most {most} characters.")
    return value


def flag_of(body: dict[str, Any], name: str, default: bool | None = None) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise Refusal(400, "INVALID_REQUEST", f"{name} must be true or false.")
    return value


def whole_of(body: dict[str, Any], name: str, least: int, most: int) -> int | None:
    """Returns a whole number, or None when it is absent; raises Refusal for anything else."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refusal(400, "INVALID_REQUEST", f"{name} must be a whole number from {least} to {most}.")
    return value
