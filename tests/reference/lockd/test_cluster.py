"""Three nodes over real mTLS: membership, election, leave, crash."""

import asyncio
import signal
from functools import partial

from tests.reference.lockd.world import TTL, XID, World, cluster, until, world


async def decide(w: World, node: int, txn: str = XID, state: str = "commit") -> dict[str, object]:
    return await w.client.post(node, "txn/decide", {"txn_id": txn, "state": state})


async def test_a_lone_node_lists_itself_and_leads_itself() -> None:
    async with world() as w:
        assert await w.lists(0) == [w.endpoint(0)]
        seen = await until(partial(w.leader, 0))
        assert (seen["leader_id"], seen["leader_endpoint"]) == (w.as_node(0).node_id, w.endpoint(0))
        assert (await decide(w, 0)) == {"txn_id": XID, "state": "commit", "status": 200}
        assert (await decide(w, 0, state="rollback"))["error"] == "txn_conflict"


async def test_three_nodes_agree_on_one_leader_and_keep_it() -> None:
    async with cluster() as w:
        first = await w.agreed(0, 1, 2)
        assert first
        await asyncio.sleep(3 * TTL)
        later = await w.agreed(0, 1, 2)
        assert later
        assert (later["leader_id"], later["term"]) == (first["leader_id"], first["term"])
        assert later["expires_at"] > first["expires_at"]


async def test_a_decision_on_a_follower_reaches_the_leader_only() -> None:
    async with cluster() as w:
        seen = await w.agreed(0, 1, 2)
        assert seen
        leader = w.number_of(seen)
        follower = (leader + 1) % 3
        assert (await decide(w, follower))["status"] == 200
        assert (await decide(w, leader, state="rollback"))["error"] == "txn_conflict"
        assert (await w.client.post(follower, "txn/replay", {"txn_id": XID}))["error"] == "txn_not_found"


async def test_a_killed_leader_is_named_until_its_lease_ends_and_replaced_after_it() -> None:
    async with cluster() as w:
        seen = await w.agreed(0, 1, 2)
        assert seen
        leader = w.number_of(seen)
        rest = [number for number in range(3) if number != leader]
        w.signal(leader, signal.SIGKILL)
        refused = await decide(w, rest[0])
        assert (refused["status"], refused["error"]) == (409, "tc_not_leader")
        assert refused["leader_endpoint"] == seen["leader_endpoint"]

        async def replaced() -> dict[str, object] | None:
            now = await w.agreed(*rest)
            return now if now and now["term"] > seen["term"] else None

        assert await until(replaced)
        assert (await decide(w, rest[0], state="rollback"))["status"] == 200
        assert w.endpoint(leader) in await w.lists(rest[0])


async def test_a_stopped_leader_hands_over_at_once() -> None:
    async with cluster() as w:
        seen = await w.agreed(0, 1, 2)
        assert seen
        leader = w.number_of(seen)
        rest = [number for number in range(3) if number != leader]
        w.signal(leader, signal.SIGTERM)
        assert await w.ended(leader) == 0
        assert w.endpoint(leader) not in await w.lists(rest[0])

        async def replaced() -> bool:
            now = await w.agreed(*rest)
            return bool(now and now["term"] > seen["term"])

        await until(replaced, TTL)


async def test_a_frozen_leader_does_not_decide_when_it_wakes() -> None:
    async with cluster() as w:
        seen = await w.agreed(0, 1, 2)
        assert seen
        leader = w.number_of(seen)
        w.signal(leader, signal.SIGSTOP)
        await asyncio.sleep(TTL + 1)
        w.signal(leader, signal.SIGCONT)
        await decide(w, leader)
        assert (await w.client.post(leader, "txn/replay", {"txn_id": XID}))["error"] == "txn_not_found"


async def test_two_of_three_lost_is_no_leader_until_they_expire() -> None:
    async with cluster() as w:
        w.signal(1, signal.SIGKILL)
        w.signal(2, signal.SIGKILL)
        await asyncio.sleep(1.2 * TTL)
        assert await w.leader(0) is None
        assert (await decide(w, 0))["error"] == "tc_unavailable"
        assert (await w.client.post(0, "txn/replay", {"txn_id": XID}))["error"] == "txn_not_found"

        async def alone() -> bool:
            return bool(await w.leader(0)) and await w.lists(0) == [w.endpoint(0)]

        await until(alone, 5 * TTL)


async def test_an_own_leave_goes_everywhere_and_switches_the_election_off() -> None:
    async with cluster() as w:
        assert (await w.as_node(0).leave(0, guarded=False))["status"] == 200
        for number in range(3):
            assert await w.lists(number) == sorted([w.endpoint(1), w.endpoint(2)])
        for path, body in (("tc/lease/acquire", vote()), ("txn/decide", {"txn_id": XID, "state": "commit"})):
            assert (await w.client.post(0, path, body))["error"] == "tc_unavailable"
        assert (await w.client.get(0, "tc/leader"))["error"] == "tc_unavailable"
        await asyncio.sleep(1.5 * TTL)
        assert w.endpoint(0) not in await w.lists(1)
        assert (await w.as_node(0).announce(0, w.endpoint(0)))["status"] == 200
        await until(partial(w.all_listed, 0, 1, 2))


def vote(term: int = 99) -> dict[str, object]:
    return {"candidate_id": "x", "candidate_endpoint": "https://x:1", "term": term, "ttl_ms": 1000}


async def test_a_foreign_leave_removes_the_caller_alone() -> None:
    async with cluster() as w:
        stranger = w.server()
        for number in range(3):
            await stranger.announce(number, "https://127.0.0.1:9/")
        assert "https://127.0.0.1:9" in await w.lists(0)
        assert (await stranger.leave(0, guarded=False))["status"] == 200
        assert await w.lists(0) == sorted(w.endpoint(number) for number in range(3))
        assert "https://127.0.0.1:9" in await w.lists(1)
        assert w.endpoint(0) in await w.lists(1)


async def test_a_leave_that_one_peer_does_not_accept_is_rejected_and_undone() -> None:
    async with cluster() as w:
        w.signal(2, signal.SIGKILL)
        refused = await w.as_node(0).leave(0, guarded=False)
        assert (refused["status"], refused["error"]) == (503, "tc_cluster_unavailable")
        assert w.endpoint(0) in await w.lists(0)

        async def back() -> bool:
            return w.endpoint(0) in await w.lists(1)

        await until(back, TTL)


async def test_a_star_of_joins_closes() -> None:
    async with world() as w:
        for _ in range(2):
            number = w.add()
            w.start(number, LOCKD_JOIN=w.endpoint(0))
        await w.ready(1, 2)
        await until(partial(w.all_listed, 0, 1, 2), 4 * TTL)


async def test_a_restarted_follower_finds_the_leader_without_an_election() -> None:
    async with cluster() as w:
        seen = await w.agreed(0, 1, 2)
        assert seen
        follower = (w.number_of(seen) + 1) % 3
        w.signal(follower, signal.SIGKILL)
        await w.ended(follower)
        w.start(follower)
        await w.ready(follower)
        shown = await w.leader(follower)
        assert shown
        assert (shown["leader_id"], shown["term"]) == (seen["leader_id"], seen["term"])
