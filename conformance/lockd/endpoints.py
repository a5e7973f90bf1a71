"""Endpoints as the protocol compares them: two spellings of one URL are one endpoint.

Scheme and host have no case, the default port may be left out, a character may stand for itself or be percent-encoded,
and a slash at the end means nothing. The one rule of the spec about spelling is that lists are normalised (trailing
slash trimmed); whoever judges that compares the texts themselves.
"""

import re
import string
from urllib.parse import urlsplit, urlunsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")


def canonical(endpoint: str) -> str:
    """Returns the one spelling of an endpoint that the suite compares; a text that is no URL is returned as it is."""
    try:
        parts = urlsplit(endpoint.strip())
        port = parts.port
    except ValueError:
        return endpoint
    if not parts.scheme or not parts.hostname:
        return endpoint
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    account, at, _ = parts.netloc.rpartition("@")
    path = _ESCAPE.sub(_unescaped, parts.path).rstrip("/")
    return urlunsplit((parts.scheme, f"{account}{at}{host}", path, parts.query, parts.fragment))


def _unescaped(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character in _UNRESERVED else found[0].upper()
