"""The normal form of an endpoint."""

import posixpath
import re
from urllib.parse import urlsplit

_FORBIDDEN = re.compile(r"[\s?#@\\\x00-\x1f\x7f]")
_LONGEST = 2048


def normal_endpoint(text: str) -> str | None:
    """Returns the endpoint with a clean path and no trailing slash; None unless it is http or https with a host.

    An `@` can only be user info here, and a bare `?` or `#` begins a query or fragment even when that is empty.
    """
    text = text.strip()
    if len(text) > _LONGEST or _FORBIDDEN.search(text):
        return None
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return None
    if url.scheme not in {"http", "https"} or not url.hostname:
        return None
    path = posixpath.normpath(url.path).lstrip("/") if url.path else ""
    return f"{url.scheme}://{url.netloc}/{path}".rstrip("/")
