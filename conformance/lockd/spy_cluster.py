"""Clusters of one real node and spies, in the states that checks start from.

The real node must have no other real member (`Lockd.lone`). Its quorum is then a majority of itself and the spies, so
the spies' votes alone decide whether it leads, follows a spy or has no leader.
"""

from holdfast.check.finding import expect
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.spy import Spy, spies


async def spy_members(lockd: Lockd, node: str, count: int, *, grant: bool = True) -> list[Spy]:
    """Makes `count` spies members of the node; they grant its votes or refuse them."""
    made = await spies(lockd, count)
    for spy in made:
        if not grant:
            spy.refuse_votes()
        await spy.join(node)
    return made


async def leaderless(lockd: Lockd, count: int = 1) -> tuple[str, list[Spy]]:
    """Returns a lone node without a leader, and its spies, which refuse every vote so that it never has a quorum."""
    node = lockd.lone
    made = await spy_members(lockd, node, count, grant=False)
    await lockd.without_leader(node)
    return node, made


async def spy_leader(lockd: Lockd, term: int = 1000, count: int = 1) -> tuple[str, list[Spy]]:
    """Returns a lone node that follows the first of its spies, and the spies."""
    node, made = await leaderless(lockd, count)
    await made[0].lead(node, term)
    seen = await lockd.leader(node)
    expect(seen, wire.ok(leader_endpoint=made[0].endpoint, term=term), why="the node follows the spy")
    return node, made
