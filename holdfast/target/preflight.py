"""Looks before the run whether the target is there: a missing one is one sentence, not ninety failed rows."""

import shutil
import socket
from urllib.parse import urlsplit

from holdfast.target.credential_files import wrong_file
from holdfast.target.descriptor import Target
from holdfast.target.url_protocol import speaks_otherwise

_TIMEOUT = 3.0
_PORTS = {"https": 443, "wss": 443, "redis": 6379, "rediss": 6379}
_STORES = ("redis", "rediss")
# Names of URLs, or their schemes, that mean UDP.
_DATAGRAMS = {"udp", "quic", "h3", "wt", "webtransport"}


def not_there(target: Target) -> str | None:
    """Returns what is missing and how to correct it; None if the target is there, with what we need to talk to it."""
    return no_program(target) or wrong_file(target) or not_reached(target)


def not_reached(target: Target) -> str | None:
    """Returns why nobody can talk to the target at its URLs, or look into its store."""
    return nothing_listens(target) or wrong_scheme(target) or no_store(target)


def no_store(target: Target) -> str | None:
    """Returns None if the Redis that the checks are to look into takes connections, or is started by Holdfast."""
    url = str(target.observe.get("redis") or "{")
    if "{" in url or urlsplit(url).scheme not in _STORES or _accepts(url):
        return None
    return f"nothing listens at {url}: start the Redis of {target.name}, or mend [observe] redis in {target.file}"


def no_program(target: Target) -> str | None:
    """Returns None if every command that starts a node names a program that exists."""
    programs = {node.start.argv[0] for node in target.nodes if node.start and node.start.argv}
    missing = [name for name in sorted(programs) if "{" not in name and shutil.which(name) is None]
    if not missing:
        return None
    return f"there is no program {missing[0]} on PATH: install it, or mend [[node]] start in {target.file}"


def nothing_listens(target: Target) -> str | None:
    """Returns None if at least one node accepts connections, or if Holdfast starts the nodes itself.

    Nodes without URLs are reached through their Redis, so that is asked for then. Where nothing can be asked (a target
    that only takes datagrams) it is taken to be there; its own checks will tell.
    """
    if target.startable:
        return None
    addresses, key = _addresses(target), "[[node]] urls"
    if not any(node.urls for node in target.nodes) and (redis := str(target.observe.get("redis", ""))):
        addresses, key = [redis], "[observe] redis"
    if not addresses or any(_accepts(url) for url in addresses):
        return None
    return f"nothing listens at {', '.join(addresses)}: start {target.name}, or mend {key} in {target.file}"


def silent(target: Target) -> list[str]:
    """Returns the URLs of nodes that others start where nothing listens yet."""
    return [] if target.startable else [url for url in _addresses(target) if not _accepts(url)]


def _addresses(target: Target) -> list[str]:
    urls = {(kind, url) for node in target.nodes for kind, url in node.urls.items()}
    return sorted({url for kind, url in urls if takes_connections(kind, url)})


def wrong_scheme(target: Target) -> str | None:
    """Returns None unless a node that others started speaks TLS where its URL says http, or the other way round."""
    if target.startable:
        return None
    for node in target.nodes:
        for kind, url in node.urls.items():
            if takes_connections(kind, url) and (problem := speaks_otherwise(url)):
                return f"[[node]] {node.name} urls {kind}: {problem}, in {target.file}"
    return None


def takes_connections(kind: str, url: str) -> bool:
    """Whether the URL is reached by TCP; those of QUIC are not, and have the scheme https as well."""
    return not {kind, urlsplit(url).scheme} & _DATAGRAMS


def _accepts(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 80)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", port), timeout=_TIMEOUT):
            return True
    except OSError:
        return False
