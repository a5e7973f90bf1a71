"""Whom a fault strikes: a campaign may name a part that a node plays for a while, or whichever node is next.

`leader` is the node that leads at that moment, `{next}` each node in turn, `{first}` the first one; the last two may
stand inside the name of a link, such as `{first}-redis`. `{worker}` is the first node of the role `worker`,
or the first one where no node has that role, because one process does everything.
"""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from holdfast.load.leader import leading
from holdfast.load.plan import Plan

NOBODY: Mapping[str, str] = MappingProxyType({})

# The parts that nodes of a spec play, and who says which node plays it now.
PARTS: Mapping[tuple[str, str], Callable[[Plan], Awaitable[str]]] = {("lockd", "leader"): leading}


def resolver(plan: Plan, roles: Mapping[str, str] = NOBODY) -> Callable[[str], Awaitable[str]]:
    """Returns who says which node or link a subject means at the moment of the fault; `roles` has that of each node."""
    names = [node.name for node in plan.nodes]
    worker = next((name for name, role in roles.items() if role == "worker"), names[0])
    turns = itertools.cycle(names)

    async def resolve(subject: str) -> str:
        if (part := PARTS.get((plan.key, subject))) is not None:
            return await part(plan)
        turn = next(turns) if "{next}" in subject else ""
        return subject.replace("{first}", names[0]).replace("{next}", turn).replace("{worker}", worker)

    return resolve
