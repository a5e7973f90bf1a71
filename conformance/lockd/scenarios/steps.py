"""Steps that several scenarios share: deciding while leaders change, and waiting until all nodes agree again."""

from collections.abc import Sequence

from holdfast.check.finding import expect
from holdfast.check.timeline import Moment
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import CLUSTER_LOOK, Lockd
from holdfast.conformance.lockd.judge import same_leader
from holdfast.conformance.lockd.wire import Answer, Leader, ok, refused

HASH = "island-chaos"


async def decide(lockd: Lockd, node: str) -> Answer:
    """Asks for a decision and returns the answer. Raises Finding unless it is a commit or one of two refusals."""
    answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=node)
    expect(answer, ok(state="commit"), refused("tc_not_leader"), refused("tc_unavailable"), why=f"a decision at {node}")
    return answer


async def decided_again(lockd: Lockd, nodes: Sequence[str], since: Moment, bound: str) -> Moment:
    """Waits until one of these nodes decides again, and judges the time; returns when."""

    async def look() -> bool:
        return any([(await decide(lockd, node)).ok for node in nodes])

    _, seen = await lockd.comes(look, bound, since=since, what="a decision on a survivor")
    return seen


async def succeeded(lockd: Lockd, nodes: Sequence[str], old: Leader, bound: str, since: Moment) -> Leader:
    """Waits until these nodes follow one leader of a later term, and judges the time; returns the leader."""

    async def look() -> Leader | None:
        return await lockd.one_leader(*nodes, above=old.term)

    leader, _ = await lockd.comes(look, bound, since=since, what=f"a leader above term {old.term}")
    return leader


async def unchanged(lockd: Lockd, nodes: Sequence[str], leader: Leader) -> None:
    """Raises Finding unless each of these nodes shows this leader in this term."""
    for node in nodes:
        same_leader(await lockd.valid_leader(node), leader, f"leader and term at {node}")


async def lists_equal(lockd: Lockd) -> bool:
    """Whether every node lists exactly all nodes."""
    wanted = sorted(lockd.endpoint(node) for node in lockd.nodes)
    return all([sorted(await lockd.members(node)) == wanted for node in lockd.nodes])


async def together_again(lockd: Lockd, since: Moment, bound: str = "rejoin_max") -> Leader:
    """Waits until all lists are equal and all nodes follow one leader, and judges the time; returns the leader."""

    async def look() -> Leader | None:
        return await lockd.one_leader(*lockd.nodes) if await lists_equal(lockd) else None

    what = "equal lists and one leader"
    leader, _ = await lockd.comes(look, bound, since=since, what=what, every=CLUSTER_LOOK)
    return leader


async def same_entries(lockd: Lockd, nodes: Sequence[str], bound: str, since: Moment) -> list[str]:
    """Waits until these nodes have the same endpoints under `HASH`, and judges the time; returns the endpoints."""

    async def look() -> list[list[str]] | None:
        seen = [await lockd.entries(HASH, node) for node in nodes]
        return seen if all(each == seen[0] for each in seen) else None

    seen, _ = await lockd.comes(look, bound, since=since, what="equal registries")
    return seen[0]
