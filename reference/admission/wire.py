"""JSON in and out, for every HTTP call of a node."""

import json
from typing import Any

from aiohttp import web
from aiohttp.client_exceptions import ClientPayloadError

from holdfast.reference.admission.rules import MESSAGES

BODY_LIMIT = 64 * 1024

_dumps = json.JSONEncoder(separators=(",", ":")).encode
_JSON = {"Content-Type": "application/json"}


class Refusal(Exception):  # noqa: N818  # an answer, not an error
    """A call that is refused without further ado; it becomes the answer."""

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
    """The body as a JSON object. Whatever else it is, is refused in one sentence."""
    if request.content_type != "application/json":
        raise Refusal(400, "INVALID_REQUEST", "The content type must be application/json.")
    text = await _read(request)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal(400, "INVALID_REQUEST", "The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise Refusal(400, "INVALID_REQUEST", "The body must be a JSON object.")
    return value


async def _read(request: web.BaseRequest) -> bytes:
    too_large = Refusal(413, "INVALID_REQUEST", f"The body is larger than {BODY_LIMIT} bytes.")
    if (request.content_length or 0) > BODY_LIMIT:
        raise too_large
    chunks = b""
    try:
        while not request.content.at_eof():
            chunks += await request.content.readany()
            if len(chunks) > BODY_LIMIT:
                raise too_large
    except (ClientPayloadError, ConnectionError, web.RequestPayloadError):
        raise Refusal(400, "INVALID_REQUEST", "The body could not be read.") from None
    return chunks


def text_of(body: dict[str, Any], name: str, *, most: int = 1000) -> str | None:
    """A text field that may be absent."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > most or not _is_unicode(value):
        raise Refusal(400, "INVALID_REQUEST", f"{name} must be a text of at most {most} characters.")
    return value


def _is_unicode(value: str) -> bool:
    """Half a surrogate pair is legal JSON, but no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def flag_of(body: dict[str, Any], name: str, default: bool | None = None) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise Refusal(400, "INVALID_REQUEST", f"{name} must be true or false.")
    return value


def whole_of(body: dict[str, Any], name: str, least: int, most: int) -> int | None:
    """A whole number that may be absent."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refusal(400, "INVALID_REQUEST", f"{name} must be a whole number from {least} to {most}.")
    return value
