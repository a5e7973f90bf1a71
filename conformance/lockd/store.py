"""The stored objects of a node: `[observe] store` prints each with its `namespace`, `key` and `value`."""

from typing import TYPE_CHECKING, Any

from holdfast.conformance.shared.store import stored

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

NAMESPACE, LEASES, REGISTRY = ".lockd", "tc-cluster/leases/", "tc-rm-members"


# Stored objects by namespace and key.
Objects = dict[tuple[str, str], dict[str, Any]]


async def objects(lockd: "Lockd", node: str) -> Objects:
    """Returns the stored objects of a node by namespace and key. Raises Finding if the command fails."""
    found = {
        (str(entry["namespace"]), str(entry["key"])): entry["value"]
        for entry in await stored(lockd, node)
        if isinstance(entry.get("value"), dict)
    }
    lockd.context.transcript.note(lambda: f"store of {node}: {', '.join('/'.join(key) for key in found)}")
    return found
