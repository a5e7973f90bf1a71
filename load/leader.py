"""Says which node leads, as soon as all nodes say the same: killing the leader of a divided cluster proves nothing."""

import asyncio
import ssl
import time
from collections.abc import Sequence

import aiohttp

from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.identities import read_identity
from holdfast.conformance.lockd.wire import Answer, Leader
from holdfast.conformance.shared.wire import parse_body
from holdfast.load.extra import LoadError
from holdfast.load.plan import Node, Plan

_LOOK_EVERY = 0.2


async def leading(plan: Plan) -> str:
    """Waits until all nodes show one valid leader; returns its name. Raises LoadError if they do not agree in time."""
    if not (bundle := plan.credentials.get("tc_client_bundle")):
        raise LoadError("who leads can be asked with [credentials] tc_client_bundle only")
    context = read_identity("tc-client", str(bundle)).client_context
    ids = own_ids(plan)
    until = time.monotonic() + 2 * plan.numbers["cluster_leader_max"]
    while time.monotonic() < until:
        seen = await asyncio.gather(*(_leader(node, context, plan.patience) for node in plan.nodes))
        if name := agreed(plan.nodes, seen, ids):
            return name
        await asyncio.sleep(_LOOK_EVERY)
    raise LoadError("the nodes did not agree on one leader in time")


def own_ids(plan: Plan) -> dict[str, str]:
    """Returns the node-ids of the nodes' own certificates, by name, where the target gives them."""
    bundles = plan.credentials.get("server_bundle")
    return {name: read_identity(name, text).node_id for name, text in bundles.items()} if bundles else {}


def agreed(nodes: Sequence[Node], seen: Sequence[Leader | None], ids: dict[str, str]) -> str:
    """Returns the node that all of them name as leader; "" if they differ, or do not know one."""
    first = seen[0]
    if first is None or any(each is None or (each.id, each.term) != (first.id, first.term) for each in seen):
        return ""
    return next((n.name for n in nodes if n.url == first.endpoint or ids.get(n.name) == first.id), "")


async def _leader(node: Node, context: ssl.SSLContext, within: float) -> Leader | None:
    request, sent = wire.leader(), time.monotonic()
    timeout = aiohttp.ClientTimeout(total=within)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(request.method, node.url + request.path, ssl=context) as reply,
        ):
            body, text = parse_body(await reply.read())
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None
    answer = Answer(reply.status, reply.headers, body, text, sent, time.monotonic(), time.time())
    return answer.leader if answer.has_leader else None
