"""Reads streams of the target's store for audits, such as the bus of intents, on the harness's loop.

A stream is named as the spec's own key templates name it, so that a descriptor with other key names is understood.
"""

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis

from holdfast.conformance.intents.keys import IntentKeys, event_of
from holdfast.load.audit import Records
from holdfast.load.campaign import Audit
from holdfast.target.deployment import Deployment

# The key names of each spec whose store has streams.
TEMPLATES: Mapping[str, Mapping[str, str]] = {"intents": IntentKeys.templates}
_SECONDS = 5.0


def unobservable(audit: Audit, deployment: Deployment) -> str:
    """Returns which entry of the descriptor is missing for an audit; "" if it can be made."""
    if not deployment.target.observe.get("events"):
        return "[observe] events"
    return "[observe] redis" if audit.stream and not deployment.store_url else ""


async def entries_of(audit: Audit, deployment: Deployment) -> Records | None:
    """Returns who gives the entries of the audit's stream by their type; None if it has none, or nobody can look."""
    if not audit.stream or not deployment.store_url:
        return None
    name = key_name(deployment.target.spec, audit.stream, deployment.target.observe)
    async with Redis.from_url(deployment.store_url, decode_responses=True, socket_timeout=_SECONDS) as redis:
        entries: Any = await redis.xrange(name)
    records = [event_of(*entry) for entry in entries]
    return lambda kind: [each.data for each in records if each.kind == kind]


def key_name(spec: str, key: str, observe: Mapping[str, Any]) -> str:
    """Returns the name of a key as the target's descriptor spells it."""
    template = {**TEMPLATES[spec], **observe.get("keys", {})}[key]
    return f"{observe.get('prefix', '')}{template}"
