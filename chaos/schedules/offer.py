"""What a target offers to schedules and storms, read from its descriptor: its nodes, its Redis, and every link.

Links are offered under the names that a deployment opens them with (`fixtures.deployment_links`), before anything has
started; the two must agree.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import permutations

from holdfast.chaos.schedules.schedule import Place, ScheduleError, Subject
from holdfast.chaos.schedules.validate import Offer
from holdfast.target.descriptor import Target
from holdfast.target.link_urls import (
    CLIENT,
    REDIS,
    SENTINEL,
    STUB,
    LinkName,
    Wire,
    link_name,
    main_key,
    told_sentinels,
    told_stubs,
    told_urls,
    wire_of,
)
from holdfast.target.store_section import StoreSpec


def offer_of(target: Target) -> Offer:
    nodes = frozenset(Subject(Place.NODE, node.name) for node in target.nodes)
    ours = frozenset(link for node in target.nodes for link in _to(LinkName(node.name, CLIENT), node.urls, node.urls))
    found = nodes | ours | _between(target) | {_joined(name, target) for name in target.links.get("proxies", {})}
    for node in target.nodes:
        found |= {Subject(Place.LINK, str(LinkName(node.name, STUB, stub))) for stub in told_stubs(node, target)}
        if target.uses_redis(node):
            found |= {Subject(Place.LINK, str(LinkName(node.name, REDIS)))}
        if told_sentinels(node, target):
            found |= _to_store_set(node.name, target.store)
    if target.gets_redis:
        found |= {Subject(Place.STORE, REDIS)}
    return Offer(found, target.capabilities(), ours)


def _to_store_set(node: str, store: StoreSpec) -> frozenset[Subject]:
    """Return the links from a node that asks Sentinels: to each of them, and to each server that they may name."""
    ends = [f"{SENTINEL}{number}" for number in range(1, store.sentinels + 1)]
    ends += [f"{REDIS}{number}" for number in range(1, store.replicas + 2)]
    return frozenset(Subject(Place.LINK, str(LinkName(node, end))) for end in ends)


def _between(target: Target) -> frozenset[Subject]:
    """Return the links between nodes: to the main URL of each, to those that are told, through a proxy to all."""
    if not target.tells_peers:
        return frozenset()
    told, proxied = told_urls(target), any(node.mentions("{proxy}") for node in target.nodes)
    pairs = permutations(target.nodes, 2)
    return frozenset(
        link for a, b in pairs for link in _to(LinkName(a.name, b.name), b.urls, b.urls if proxied else told)
    )


def _to(ends: LinkName, urls: Mapping[str, str], wanted: Collection[str]) -> Iterator[Subject]:
    """Yield the links to the main URL of an end, and to those that are wanted too."""
    for key, url in urls.items():
        if key in wanted or key == main_key(urls):
            yield _link(replace(ends, url="" if key == main_key(urls) else key), wire_of(url, key))


def _link(name: LinkName, wire: Wire) -> Subject:
    return Subject(Place.UDP if wire.datagrams else Place.LINK, str(name))


def _joined(subject: str, target: Target) -> Subject:
    """Return the subject of a proxy that the operator runs."""
    nodes = {node.name: node.urls for node in target.nodes}
    try:
        name = link_name(subject, nodes)
    except ValueError as error:
        raise ScheduleError(f"[links] proxies: {error}") from None
    urls = nodes.get(name.end, {})
    key = name.url or main_key(urls)
    return _link(name, wire_of(urls.get(key, ""), key))
