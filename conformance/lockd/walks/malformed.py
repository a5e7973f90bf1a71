"""Calls that lack what they need, by the names that the model has for them (`commands.MALFORMED`)."""

from collections.abc import Mapping

from holdfast.conformance.lockd import wire
from holdfast.conformance.shared.wire import Request


def malformed_requests(endpoint: str, backend: str) -> Mapping[str, Request]:
    """Each is sound but for one thing: repaired, it would be served."""
    scheme, _, place = endpoint.partition("://")
    candidate = {"candidate_id": "x", "candidate_endpoint": endpoint, "term": "first", "ttl_ms": 1000}
    return {
        "announce without an endpoint": Request("POST", wire.ANNOUNCE, {}),
        "announce of what is no URL": wire.announce(place),
        "announce with a user": wire.announce(f"{scheme}://x@{place}"),
        "announce with a query": wire.announce(f"{endpoint}?x=1"),
        "announce that is no object": Request("POST", wire.ANNOUNCE, [{"self_endpoint": endpoint}]),
        "announce of a number": Request("POST", wire.ANNOUNCE, {"self_endpoint": 1}),
        "acquire with a text as term": Request("POST", wire.ACQUIRE, candidate),
        "register without an endpoint": Request("POST", wire.REGISTER, {"backend_hash": backend}),
        "register without a backend": Request("POST", wire.REGISTER, {"endpoint": endpoint}),
        "unregister without an endpoint": Request("POST", wire.UNREGISTER, {"backend_hash": backend}),
    }
