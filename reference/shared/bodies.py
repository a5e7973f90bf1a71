"""Reads the JSON body of a request within a limit. What is wrong with one raises BadBody, with a sentence for people.

The spec says with which code such a request is refused, so its own `wire` turns BadBody into its refusal.
"""

import json
from typing import Any

from aiohttp import web
from aiohttp.client_exceptions import ClientPayloadError


class BadBody(Exception):  # noqa: N818  # named for what is wrong
    """`status` is that of HTTP: 413 for a body that is too large, 400 for all else."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def read_body(request: web.BaseRequest, largest: int) -> bytes:
    """Returns the whole body; stops reading where it gets too large."""
    too_large = BadBody(413, f"The body is larger than {largest} bytes.")
    if (request.content_length or 0) > largest:
        raise too_large
    raw = bytearray()
    try:
        async for chunk in request.content.iter_any():
            raw += chunk
            if len(raw) > largest:
                raise too_large
    except (ClientPayloadError, ConnectionError, web.RequestPayloadError):
        raise BadBody(400, "The body could not be read.") from None
    return bytes(raw)


def json_object(raw: bytes) -> dict[str, Any]:
    """Returns a body as a JSON object."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadBody(400, "The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise BadBody(400, "The body must be a JSON object.")
    return value


def is_unicode(value: str) -> bool:
    """Tells whether a text can be encoded: half a surrogate pair is legal JSON, but not in UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
