"""What is spoken at a URL, which URLs nodes are told of each other, and the full names of links.

A link leads from one end to one URL of another end, and its name says so:

    a-redis  a-sentinel1           from node a to its Redis, to the first of its Sentinels
    a-redis1  a-redis2             from node a to each server of a set, where the node asks Sentinels for them
    a-b  a-b.grpc                  from node a to node b: to its main URL (the first of its descriptor), to another one
    a-client  a-client.quic        from our clients to node a
    a-stub.gc                      from node a to a stub of the harness

The part behind the dot is the key of the URL in `urls`, or the name of the stub. `a-b.http` is `a-b` if `http` is the
main URL of b: each link has one name only, the short one.

What is spoken there (`Wire`) decides whether the link carries datagrams and what a canary asks. The scheme of the URL
says it, except for two things that hide behind `http` and `https`: gRPC and WebTransport. For those the key does.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from holdfast.target.descriptor import NodeSpec, Target
from holdfast.target.link_names import split_link

CLIENT, REDIS, SENTINEL, STUB = "client", "redis", "sentinel", "stub"


class Wire(StrEnum):
    HTTP = "http"
    TLS = "tls"
    GRPC = "grpc"
    REDIS = "redis"
    SENTINEL = "sentinel"
    QUIC = "quic"
    UDP = "udp"

    @property
    def datagrams(self) -> bool:
        return self in (Wire.QUIC, Wire.UDP)


_SCHEMES = {
    "http": Wire.HTTP, "ws": Wire.HTTP, "https": Wire.TLS, "wss": Wire.TLS, "rediss": Wire.TLS, "grpcs": Wire.TLS,
    "grpc": Wire.GRPC, "redis": Wire.REDIS, "sentinel": Wire.SENTINEL,
    "quic": Wire.QUIC, "https+quic": Wire.QUIC, "udp": Wire.UDP,
}  # fmt: skip
_KEYS = {"quic": Wire.QUIC, "h3": Wire.QUIC, "webtransport": Wire.QUIC, "wt": Wire.QUIC, "udp": Wire.UDP}
_SENTINEL = re.compile(rf"-{SENTINEL}(\d+)$")
# How a descriptor tells a node one URL of others, {nodes.b.grpc} or {roles.mc.grpc}, the address of a stub, {stub.gc},
# and where its Sentinels are.
_TOLD = re.compile(r"\{(?:nodes|roles)\.[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)")
_STUB = re.compile(rf"\{{{STUB}\.([A-Za-z0-9_-]+)")
_SENTINELS = "{sentinels"


def wire_of(url: str, key: str = "") -> Wire:
    """Returns what is spoken at this URL, which the descriptor has under this key."""
    by_scheme = _SCHEMES.get(url.partition("://")[0], Wire.HTTP)
    if by_scheme in (Wire.HTTP, Wire.TLS):
        if key == "grpc" and by_scheme is Wire.HTTP:
            return Wire.GRPC
        return _KEYS.get(key, by_scheme)
    return by_scheme


def main_key(urls: Mapping[str, str]) -> str:
    """Returns the key of the first URL that a descriptor names: what `{nodes.b.url}` means."""
    return next(iter(urls), "")


@dataclass(frozen=True)
class LinkName:
    """The ends of a link: a node, and `redis`, `sentinel2`, `client`, `stub` or another node, with one of its URLs."""

    node: str
    end: str
    url: str = ""

    def __str__(self) -> str:
        return f"{self.node}-{self.end}{'.' if self.url else ''}{self.url}"


def link_name(subject: str, nodes: Mapping[str, Mapping[str, str]]) -> LinkName:
    """Returns what the name of a link means; `nodes` are the URLs of each. Raises ValueError with the remedy."""
    named, _, url = subject.partition(".")
    number = _SENTINEL.search(named)
    shorter = _SENTINEL.sub(f"-{SENTINEL}", named)
    node, end = split_link(f"{named}.{url}" if named.endswith(f"-{STUB}") else shorter, tuple(nodes))
    if node not in nodes:
        raise ValueError(f"{subject}: a link is named after the node first; write {end}-{node}")
    if end.startswith(f"{STUB}."):
        return LinkName(node, STUB, url)
    if number:
        return LinkName(node, end + number[1], url)
    urls = nodes[node] if end == CLIENT else nodes.get(end, {})
    if url and url not in urls:
        whose = node if end == CLIENT else end
        raise ValueError(f"{subject}: {whose} has no URL {url!r}; it has {', '.join(urls) or 'none'}")
    return LinkName(node, end, "" if url == main_key(urls) else url)


def told_urls(target: Target) -> frozenset[str]:
    """Returns the keys of the URLs that some node is told of others, besides their main ones."""
    return frozenset(key for text in _texts(target) for key in _TOLD.findall(text))


def told_stubs(node: NodeSpec, target: Target) -> frozenset[str]:
    """Returns the stubs whose addresses this node is told."""
    return stubs_in(_texts_of(node, target))


def stubs_in(texts: Iterable[str]) -> frozenset[str]:
    """Returns the stubs that these texts name."""
    return frozenset(name for text in texts for name in _STUB.findall(text))


def told_sentinels(node: NodeSpec, target: Target) -> bool:
    """Returns whether this node is told where the Sentinels are."""
    return any(_SENTINELS in text for text in _texts_of(node, target))


def _texts(target: Target) -> Iterator[str]:
    for node in target.nodes:
        yield from _texts_of(node, target)


def _texts_of(node: NodeSpec, target: Target) -> Iterator[str]:
    yield from node.env.values()
    yield from node.start.words() if node.start else ()
    yield from (setting.default or "" for setting in target.settings.values())
