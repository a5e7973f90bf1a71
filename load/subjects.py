"""Whom a fault strikes: a campaign may name a part that a node plays for a while, such as `leader`."""

from collections.abc import Awaitable, Callable

from holdfast.load.plan import Plan


def resolver(_plan: Plan) -> Callable[[str], Awaitable[str]]:
    """Returns who says which node or link a subject means at the moment of the fault."""

    async def as_it_is(subject: str) -> str:
        return subject

    return as_it_is
