"""The target's store, where the descriptor has a command that dumps it.

`[observe] store` is run with its placeholders filled for the node; it prints one JSON object per stored thing, one per
line. Which members such an object has, the suite of the spec says.
"""

from typing import Any

from holdfast.check.finding import Finding
from holdfast.check.hooks import HookError, Hooks
from holdfast.conformance.shared.work import Work


async def stored(work: Work, node: str) -> list[dict[str, Any]]:
    """Returns what a node has stored. Raises Finding if the command fails, NotObservable if there is none."""
    hooks = await work.context.get(Hooks)
    try:
        return list(await hooks.dump(node))
    except HookError as failed:
        raise Finding(["a dump of the store"], str(failed)[-300:], failed.entry) from failed
