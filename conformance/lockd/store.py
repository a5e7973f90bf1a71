"""The target's store, where the descriptor has a command that dumps it.

`[observe] store` is filled for the node and run; it prints one JSON object a line, with `namespace`, `key` and `value`.
"""

import asyncio
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

from holdfast.finding import Finding
from holdfast.observe import json_lines

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

NAMESPACE, LEASES, REGISTRY = ".lockd", "tc-cluster/leases/", "tc-rm-members"


async def objects(lockd: "Lockd", node: str) -> dict[tuple[str, str], dict[str, Any]]:
    command = shlex.split(lockd.deployment.fill(str(lockd.context.target.observe["store"]), node))
    ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Finding(["a dump of the store"], ended.stderr[-300:], f"[observe] store: {command[0]}")
    found = {
        (str(entry["namespace"]), str(entry["key"])): entry["value"]
        for entry in json_lines(ended.stdout.splitlines())
        if isinstance(entry.get("value"), dict)
    }
    lockd.context.transcript.note(lambda: f"store of {node}: {', '.join('/'.join(key) for key in found)}")
    return found
