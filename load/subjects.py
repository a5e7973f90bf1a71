"""Whom a fault strikes: a campaign may name a part that a node plays for a while, or whichever node is next.

`leader` is the node that leads at that moment, `{next}` each node in turn, `{first}` the first one; the last two may
stand inside the name of a link, such as `{first}-redis`.
"""

import itertools
from collections.abc import Awaitable, Callable, Mapping

from holdfast.load.leader import leading
from holdfast.load.plan import Plan

# The parts that nodes of a spec play, and who says which node plays it now.
PARTS: Mapping[tuple[str, str], Callable[[Plan], Awaitable[str]]] = {("lockd", "leader"): leading}


def resolver(plan: Plan) -> Callable[[str], Awaitable[str]]:
    """Returns who says which node or link a subject means at the moment of the fault."""
    names = [node.name for node in plan.nodes]
    turns = itertools.cycle(names)

    async def resolve(subject: str) -> str:
        if (part := PARTS.get((plan.key, subject))) is not None:
            return await part(plan)
        turn = next(turns) if "{next}" in subject else ""
        return subject.replace("{first}", names[0]).replace("{next}", turn)

    return resolve
