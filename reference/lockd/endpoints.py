"""The normal form of an endpoint."""

import posixpath
import re
from urllib.parse import urlsplit

_FORBIDDEN = re.compile(r"[\s?#@\\\x00-\x1f\x7f]")
_LONGEST = 2048


def normal_endpoint(text: str) -> str | None:
    """Trimmed, http or https with a host, clean path, no trailing slash; None for what is no endpoint.

    An `@` can only be user info here, and a bare `?` or `#` begins a query or fragment even when that is empty.
    """
    text = text.strip()
    if len(text) > _LONGEST or _FORBIDDEN.search(text):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    path = posixpath.normpath(parts.path).lstrip("/") if parts.path else ""
    return f"{parts.scheme}://{parts.netloc}/{path}".rstrip("/")
