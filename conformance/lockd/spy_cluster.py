"""Clusters of one real node and spies, in the states that checks start from.

The real node must have no other real member (`Lockd.lone`). Its quorum is then a majority of itself and the spies, so
the spies' votes alone decide whether it leads, follows a spy or has no leader.

A leader whose lease has lapsed may not have noticed yet: it may be between two attempts to renew. Whoever changes
something at that moment, a vote or a member, may let it go on in its old term. So checks that want the old leadership
to be over wait for the step-down itself (`stepped_down`).
"""

import time

from holdfast.check.finding import expect
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.spy import Spy, spies
from holdfast.conformance.lockd.wire import Leader


async def spy_members(lockd: Lockd, node: str, count: int, *, grant: bool = True) -> list[Spy]:
    """Makes `count` spies members of the node; they grant its votes or refuse them."""
    made = await spies(lockd, count)
    for spy in made:
        if not grant:
            spy.refuse_votes()
        await spy.join(node)
    return made


async def stepped_down(lockd: Lockd, node: str, made: list[Spy], since: Moment, owner: str = "TC-STEP-03") -> int:
    """Waits until the node has given its leadership up; returns the last term that it led in, 0 if it led in none.

    It has when it shows no valid leader, and a spy has got the release of its lease or a vote request of a later term.
    """
    mine, led = lockd.endpoint(node), [0]

    async def look() -> bool:
        seen = await lockd.leader(node)
        if seen.leader.endpoint == mine:  # also a record that has expired
            led[0] = max(led[0], seen.leader.term)
        return not seen.has_leader and any(_gave_up(spy, led[0], since) for spy in made)

    await lockd.awaits(owner, look, "lease_settled_max", since=since, what=f"{node} to step down")
    return led[0]


def _gave_up(spy: Spy, led: int, since: Moment) -> bool:
    released = any(call.term >= led for call in spy.got(wire.RELEASE, since=since))
    return released or any(call.term > led for call in spy.got(wire.ACQUIRE, since=since))


async def leaderless(lockd: Lockd, count: int = 1) -> tuple[str, list[Spy]]:
    """Returns a lone node without a leader, and its spies, which refuse every vote so that it never has a quorum."""
    node, since = lockd.lone, lockd.T.now()
    made = await spy_members(lockd, node, count, grant=False)
    await stepped_down(lockd, node, made, since)
    return node, made


async def raised(lockd: Lockd, node: str, term: int = 1000) -> tuple[Spy, Leader]:
    """Makes a lone node lead above this term, which its only peer reports; returns the spy, and the node's lease."""
    since = lockd.T.now()
    (spy,) = await spies(lockd, 1)
    spy.report_term(term)
    spy.refuse_votes()
    await spy.join(node)
    await stepped_down(lockd, node, [spy], since)
    spy.grant_votes()
    leader, _ = await lockd.leads(node, above=term, owner="TC-ELECT-01")
    return spy, leader


async def spy_leader(lockd: Lockd, term: int = 1000, count: int = 1) -> tuple[str, list[Spy]]:
    """Returns a lone node that follows the first of its spies, and the spies."""
    node, made = await leaderless(lockd, count)
    await made[0].lead(node, term)
    seen = await lockd.leader(node)
    with lockd.context.arranging("TC-ELECT-08"):
        expect(seen, wire.ok(leader_endpoint=made[0].endpoint, term=term), why="the node follows the spy")
    return node, made


async def reported_leader(lockd: Lockd, term: int) -> tuple[str, Spy]:
    """Returns a lone node that follows a spy by its report alone, and the spy.

    Needs no vote of the node, so it also works on one whose slot its own candidacies keep occupied.
    """
    node, (spy,) = await leaderless(lockd)
    ttl = lockd.T.leader_ttl
    spy.report(lambda: Leader(spy.node_id, spy.endpoint, term, int((time.time() + ttl) * 1000)))

    async def follows() -> bool:
        seen = await lockd.valid_leader(node)
        return seen is not None and (seen.endpoint, seen.term) == (spy.endpoint, term)

    await lockd.awaits("TC-ELECT-08", follows, "lease_settled_max", what="the node to follow the reported leader")
    return node, spy
