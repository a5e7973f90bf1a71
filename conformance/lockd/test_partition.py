"""An isolated leader (seed: Step-down and quorum loss; Test Expectations)."""

from holdfast.check import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.proxies import Proxies
from holdfast.conformance.lockd.wire import Leader, ok, participant, refused
from holdfast.finding import expect
from holdfast.spectime import SpecTime


async def _behind_proxies(lockd: Lockd) -> tuple[Proxies, Leader]:
    """All nodes started again so that they reach each other through proxies only; and their leader."""
    proxies = Proxies(lockd)
    urls = await proxies.stand(*lockd.nodes)
    join = ",".join(proxies.endpoint(node) for node in lockd.nodes)
    for node in lockd.nodes:  # all at once, or those that still run would tell of the leader from before
        await lockd.kill(node)
    for node in lockd.nodes:
        settings = {"endpoint": proxies.endpoint(node), "proxy": urls[node]}
        await lockd.restart(node, join=join, **settings)
    for node in lockd.nodes:
        for other in lockd.nodes:
            await lockd.call(wire.announce(proxies.endpoint(node)), lockd.own(node), node=other)

    async def agreed() -> Leader | None:
        found = await lockd.one_leader(*lockd.nodes)
        return found if found and found.endpoint in join.split(",") else None

    leader, _ = await lockd.comes(agreed, "cluster_leader_max", what="one leader behind the proxies")
    return proxies, leader


@verifies("TC-STEP-08", isolation="disruptive", waits="2*cluster_leader_max + two_leader_ttl + heal_max")
async def test_an_isolated_leader_falls_silent_and_follows_after_healing(lockd: Lockd, T: SpecTime) -> None:
    proxies, leader = await _behind_proxies(lockd)
    old = next(node for node in lockd.nodes if proxies.endpoint(node) == leader.endpoint)
    others = lockd.others(old)
    proxies.isolate(old)
    cut = T.now()

    async def successor() -> Leader | None:
        return await lockd.one_leader(*others, above=leader.term)

    new, _ = await lockd.comes(successor, "lease_settled_max", since=cut, what="a successor of the isolated leader")
    await T.sleep_until(cut, T.lease_silent_max, "the isolated leader's lease to end")

    async def silent() -> None:
        answer = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
        expect(answer, refused("tc_unavailable"), refused("tc_not_leader"), why="a decision at the isolated leader")

    left = cut.lo + T.two_leader_ttl - T.clock_slack - T.now().lo
    await lockd.throughout(silent, max(left, T.clock_slack), "the isolated leader")
    proxies.heal()
    healed = T.now()

    async def follows() -> bool:
        found = await lockd.one_leader(*lockd.nodes, above=leader.term)
        return found is not None

    await lockd.comes(follows, "heal_max", since=healed, what="all nodes to follow the new leader")
    for node in lockd.nodes:
        one = [participant("default", "k")]
        stale = await lockd.call(wire.apply(lockd.txn(), "commit", one, term=leader.term), node=node)
        expect(stale, refused("tc_term_stale"), why=f"the old term at {node}; the new one is {new.term}")
    control = await lockd.call(wire.decide(lockd.txn(), "commit"), node=old)
    expect(control, ok(state="commit"), why="control: decisions work on the healed node")
