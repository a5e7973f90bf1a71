"""A look before the run: a target at which nothing listens is one sentence, not ninety failed rows."""

import socket
from urllib.parse import urlsplit

from holdfast.target import Target

_PATIENCE = 3.0


def nothing_listens(target: Target) -> str | None:
    """None when at least one node accepts connections, or when we are to start them ourselves."""
    if target.startable:
        return None
    addresses = sorted({url for node in target.nodes for url in node.urls.values()})
    if any(_accepts(url) for url in addresses):
        return None
    return f"nothing listens at {', '.join(addresses)}: start {target.name}, or mend [[node]] urls in {target.file}"


def _accepts(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", port), timeout=_PATIENCE):
            return True
    except OSError:
        return False
