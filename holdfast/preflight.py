"""A look before the run: a target that is not there is one sentence, not ninety failed rows."""

import shutil
import socket
from urllib.parse import urlsplit

from holdfast.target import Target

_PATIENCE = 3.0


def not_there(target: Target) -> str | None:
    return no_program(target) or nothing_listens(target)


def no_program(target: Target) -> str | None:
    """None when every command that starts a node names a program that is there."""
    programs = {node.start.argv[0] for node in target.nodes if node.start and node.start.argv}
    missing = [name for name in sorted(programs) if "{" not in name and shutil.which(name) is None]
    if not missing:
        return None
    return f"there is no program {missing[0]} on PATH: install it, or mend [[node]] start in {target.file}"


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
