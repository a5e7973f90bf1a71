"""What the stories have in common: deciding while leaders change, and views that have to be equal again."""

from collections.abc import Sequence

from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import CLUSTER_LOOK, Lockd
from holdfast.conformance.lockd.wire import Answer, Leader, ok, refused
from holdfast.finding import expect
from holdfast.timeline import Moment

HASH = "island-chaos"


async def decide(lockd: Lockd, node: str) -> Answer:
    """A decision; without a leader at hand there are two refusals, and nothing else is legal."""
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, ok(state="commit"), refused("tc_not_leader"), refused("tc_unavailable"), why=f"a decision at {node}")
    return answer


async def decided_again(lockd: Lockd, nodes: Sequence[str], since: Moment, bound: str) -> Moment:
    async def look() -> bool:
        return any([(await decide(lockd, node)).ok for node in nodes])

    _, seen = await lockd.comes(look, bound, since=since, what="a decision on a survivor")
    return seen


async def succeeded(lockd: Lockd, nodes: Sequence[str], old: Leader, bound: str, since: Moment) -> Leader:
    """Until these nodes follow one leader of a later term."""

    async def look() -> Leader | None:
        return await lockd.one_leader(*nodes, above=old.term)

    leader, _ = await lockd.comes(look, bound, since=since, what=f"a leader above term {old.term}")
    return leader


async def unchanged(lockd: Lockd, nodes: Sequence[str], leader: Leader) -> None:
    for node in nodes:
        seen = await lockd.valid_leader(node)
        expect(seen and (seen.id, seen.term), (leader.id, leader.term), why=f"leader and term at {node}")


async def lists_equal(lockd: Lockd) -> bool:
    wanted = sorted(lockd.endpoint(node) for node in lockd.nodes)
    return all([await lockd.members(node) == wanted for node in lockd.nodes])


async def together_again(lockd: Lockd, since: Moment, bound: str = "rejoin_max") -> Leader:
    async def look() -> Leader | None:
        return await lockd.one_leader(*lockd.nodes) if await lists_equal(lockd) else None

    what = "equal lists and one leader"
    leader, _ = await lockd.comes(look, bound, since=since, what=what, every=CLUSTER_LOOK)
    return leader


async def same_entries(lockd: Lockd, nodes: Sequence[str], bound: str, since: Moment) -> list[str]:
    """Until these nodes have the same endpoints under our backend hash."""

    async def look() -> list[list[str]] | None:
        seen = [await lockd.entries(HASH, node) for node in nodes]
        return seen if all(each == seen[0] for each in seen) else None

    seen, _ = await lockd.comes(look, bound, since=since, what="equal registries")
    return seen[0]
