"""One node among false members: what it sends, when, and with which certificate."""

import asyncio
import itertools
import signal
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from tests.reference.lockd.spy import FRIENDLY, REFUSAL, Spy, spy
from tests.reference.lockd.world import GUARD, TTL, XID, World, until, world

E = "https://127.0.0.1:9"
PAIR = {"backend_hash": "island-x", "endpoint": E}


def gaps(one: Spy, path: str) -> list[float]:
    times = [each.at for each in one.calls(path)]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


async def sends(one: Spy, path: str, count: int = 1) -> bool:
    return len(one.calls(path)) >= count


def about(one: Spy, path: str, backend: str = "island-x") -> list[Any]:
    return [each for each in one.calls(path) if each.body.get("backend_hash") == backend]


async def leads(w: World) -> dict[str, Any] | None:
    """Returns the leader that the node shows, if that is the node itself."""
    seen = await w.leader(0)
    return seen if seen and seen["leader_endpoint"] == w.endpoint(0) else None


async def leaderless(w: World) -> bool:
    return await w.leader(0) is None


async def test_announces_and_renewals_keep_their_periods() -> None:
    async with world() as w, spy(w) as member:
        await until(partial(sends, member, "tc/cluster/announce", 4))
        assert all(gap == pytest.approx(TTL, rel=0.2) for gap in gaps(member, "tc/cluster/announce"))
        renewals = gaps(member, "tc/lease/renew")[1:]
        assert renewals
        assert all(gap == pytest.approx(TTL / 3, rel=0.25) for gap in renewals)
        sent = member.calls("tc/lease/renew")[-1]
        assert sent.body == {"leader_id": w.as_node(0).node_id, "term": sent.body["term"], "ttl_ms": 1000 * TTL}
        assert f"spiffe://lockd/server/{w.as_node(0).node_id}" in member.calls("tc/cluster/announce")[0].uris


async def test_a_lost_renewal_quorum_ends_the_leadership_with_its_lease() -> None:
    async with world() as w, spy(w) as member:
        await until(partial(sends, member, "tc/lease/renew", 3))
        member.refuse_votes()
        refused = time.monotonic()
        await until(partial(leaderless, w), TTL + 0.5)
        assert (await w.client.post(0, "txn/decide", {"txn_id": XID, "state": "commit"}))["error"] == "tc_unavailable"
        await until(partial(sends, member, "tc/lease/release"), 1)
        assert time.monotonic() - refused < TTL + 1
        term = member.calls("tc/lease/release")[0].body["term"]
        member.grant_votes()
        seen = await until(partial(leads, w), 2 * TTL)
        assert seen["term"] > term


async def test_a_leader_gives_way_to_a_higher_term_that_a_member_knows() -> None:
    async with world() as w, spy(w) as willing, spy(w) as apart:
        await until(partial(sends, willing, "tc/lease/renew", 3))
        seen = await until(partial(leads, w))
        stale = (409, {"error": "tc_term_stale"})
        apart.script |= {
            "/v1/tc/lease/acquire": stale,
            "/v1/tc/lease/renew": stale,
            "/v1/tc/leader": (200, {"term": 70}),
        }
        await until(partial(sends, willing, "tc/lease/release"), 3 * TTL)
        assert willing.calls("tc/lease/release")[-1].body["term"] == seen["term"]
        apart.grant_votes()

        async def above() -> bool:
            now = await leads(w)
            return bool(now and now["term"] > 70)

        assert await until(above, 2 * TTL)


async def test_a_restarted_node_that_is_alone_runs_above_the_terms_of_its_seeds() -> None:
    async with world() as w, spy(w, member=False) as seed:
        seed.script["/v1/tc/leader"] = (200, {"term": 41})
        w.signal(0, signal.SIGKILL)
        await w.ended(0)
        w.start(0, LOCKD_JOIN=f"{w.endpoint(0)},{seed.endpoint}")
        await w.ready(0)
        seen = await until(partial(leads, w))
        assert seen["term"] == 42


async def test_the_term_of_a_candidate_is_above_what_peers_report() -> None:
    async with world() as w, spy(w) as one, spy(w) as two:
        for each in (one, two):
            each.refuse_votes()
        one.script["/v1/tc/leader"], two.script["/v1/tc/leader"] = (200, {"term": 7}), (200, {"term": 1000})

        async def asked() -> bool:
            return any(each.body["term"] == 1001 for each in one.calls("tc/lease/acquire"))

        await until(asked)
        for each in (one, two):
            each.grant_votes()
        assert (await until(partial(leads, w)))["term"] == 1001


@pytest.mark.parametrize(("n", "quorum"), [(2, 2), (3, 2), (4, 3), (5, 3)])
async def test_one_vote_below_the_quorum_elects_nobody(n: int, quorum: int) -> None:
    async with world() as w, AsyncExitStack() as stack:
        spies = [await stack.enter_async_context(spy(w)) for _ in range(n - 1)]
        for place, each in enumerate(spies):
            if place >= quorum - 2:
                each.refuse_votes()
        await until(partial(leaderless, w), 2 * TTL)
        for _ in range(10):
            await asyncio.sleep(TTL / 10)
            assert await w.leader(0) is None
        spies[quorum - 2].grant_votes()
        assert await until(partial(leads, w), 2 * TTL)


async def test_a_reported_leader_is_followed_and_forwarded_to() -> None:
    async with world() as w, spy(w) as member:
        member.refuse_votes()
        await until(partial(leaderless, w), 2 * TTL)

        async def follows() -> bool:
            ahead = round(time.time() * 1000) + round(1000 * TTL)
            report = {"leader_id": "spy", "leader_endpoint": member.endpoint, "term": 50, "expires_at": ahead}
            member.script["/v1/tc/leader"] = (200, report)
            seen = await w.leader(0)
            return bool(seen and seen["term"] == 50)

        await until(follows)
        before = len(member.calls("tc/lease/acquire"))
        body = {"txn_id": XID, "state": "commit", "participants": [{"namespace": "default", "key": "k"}]}
        answer = await w.client.post(0, "txn/decide", body)
        assert (answer["status"], answer["txn_id"]) == (200, "of the spy")
        assert member.calls("txn/decide")[0].body == body
        assert (await w.client.post(0, "txn/replay", {"txn_id": XID}))["error"] == "txn_not_found"
        member.script["/v1/txn/decide"] = (409, {"error": "txn_conflict"})
        assert (await w.client.post(0, "txn/decide", body))["error"] == "txn_conflict"
        for _ in range(20):
            await asyncio.sleep(TTL / 10)
            assert await follows()
        assert len(member.calls("tc/lease/acquire")) == before
        member.script["/v1/tc/leader"] = (200, {})
        ends = (await w.client.get(0, "tc/leader"))["expires_at"] / 1000
        await until(partial(sends, member, "tc/lease/acquire", before + 1), 2 * TTL)
        assert time.time() >= ends
        assert member.calls("tc/lease/acquire")[before].body["term"] == 51


async def test_seeds_serve_only_while_no_other_member_is_listed() -> None:
    async with world() as w, spy(w, member=False) as seed, spy(w, member=False) as member:
        w.signal(0, signal.SIGKILL)
        await w.ended(0)
        w.start(0, LOCKD_JOIN=f"{w.endpoint(0)},{seed.endpoint}")
        await w.ready(0)
        await until(partial(sends, seed, "tc/cluster/announce", 2))
        assert await w.lists(0) == [w.endpoint(0)]
        await member.caller.announce(0, member.endpoint)
        await until(partial(sends, member, "tc/cluster/announce"), 1.5 * TTL)
        announced = len(seed.calls("tc/cluster/announce"))
        await until(partial(sends, member, "tc/cluster/announce", 2), 1.5 * TTL)
        assert len(seed.calls("tc/cluster/announce")) == announced
        await member.caller.leave(0)
        await until(partial(sends, seed, "tc/cluster/announce", announced + 1), 1.5 * TTL)


async def test_a_failed_replication_is_undone_where_it_was_taken() -> None:
    async with world() as w, spy(w) as good, spy(w) as bad:
        await until(partial(sends, good, "tc/lease/renew", 2))
        bad.script["/v1/tc/rm/register"] = (500, {})
        refused = await w.server().post(0, "tc/rm/register", PAIR)
        assert (refused["status"], refused["error"]) == (502, "tc_rm_replication_failed")
        assert [each.path for each in good.heard if each.body == PAIR] == ["/v1/tc/rm/register", "/v1/tc/rm/unregister"]
        assert all(each.headers["X-Lockd-TC-Replicate"] == "1" for each in about(good, "tc/rm/register"))
        assert "island-x" not in await w.backends(0)
        bad.script["/v1/tc/rm/register"] = FRIENDLY["/v1/tc/rm/register"]
        assert (await w.server().post(0, "tc/rm/register", PAIR))["status"] == 200
        bad.script["/v1/tc/rm/unregister"] = (500, {})
        assert (await w.server().post(0, "tc/rm/unregister", PAIR))["status"] == 502
        assert (await w.backends(0))["island-x"] == [E]
        assert [each.path for each in good.heard if each.body == PAIR][-1] == "/v1/tc/rm/register"


async def test_a_failed_repetition_undoes_nothing() -> None:
    async with world() as w, spy(w) as member:
        caller = w.server()
        assert (await until(partial(registered, caller)))["status"] == 200
        member.script |= {"/v1/tc/rm/register": (500, {}), "/v1/tc/rm/unregister": (500, {})}
        assert (await caller.post(0, "tc/rm/register", PAIR))["status"] == 502
        assert (await w.backends(0))["island-x"] == [E]
        assert (await caller.post(0, "tc/rm/unregister", {**PAIR, "endpoint": "https://h:2"}))["status"] == 502
        assert (await w.backends(0))["island-x"] == [E]
        member.script["/v1/tc/leader"] = (500, {})
        before = len(about(member, "tc/rm/unregister"))
        assert (await caller.post(0, "tc/rm/unregister", PAIR))["status"] == 502
        assert len(about(member, "tc/rm/unregister")) == before


async def registered(caller: Any) -> dict[str, Any] | None:
    answer: dict[str, Any] = await caller.post(0, "tc/rm/register", PAIR)
    return answer if answer["status"] == 200 else None


async def test_a_leaving_leader_sends_its_leave_to_all_and_releases() -> None:
    async with world() as w, spy(w) as one, spy(w) as two:
        await until(partial(sends, two, "tc/lease/renew", 2))
        two.script["/v1/tc/cluster/leave"] = (500, {})
        seen = await w.leader(0)
        assert seen
        refused = await w.as_node(0).leave(0, guarded=False)
        assert (refused["status"], refused["error"]) == (503, "tc_cluster_unavailable")
        assert not one.calls("tc/lease/release")
        later = await w.leader(0)
        assert later
        assert later["term"] == seen["term"]
        two.script["/v1/tc/cluster/leave"] = FRIENDLY["/v1/tc/cluster/leave"]
        assert (await w.as_node(0).leave(0, guarded=False))["status"] == 200
        for each in (one, two):
            assert each.calls("tc/lease/release")[-1].body == {"leader_id": seen["leader_id"], "term": seen["term"]}
            assert each.calls("tc/cluster/leave")[-1].headers["X-Lockd-TC-Leave-Fanout"] == "1"
            assert f"spiffe://lockd/server/{w.as_node(0).node_id}" in each.calls("tc/cluster/leave")[-1].uris
        announced = len(one.calls("tc/cluster/announce"))
        await asyncio.sleep(1.5 * TTL)
        assert len(one.calls("tc/cluster/announce")) == announced
        assert (await w.client.get(0, "tc/leader"))["error"] == "tc_unavailable"


async def test_an_own_leave_with_the_guard_is_not_sent_on() -> None:
    async with world() as w, spy(w) as member:
        await until(partial(sends, member, "tc/lease/renew", 2))
        assert (await w.as_node(0).post(0, "tc/cluster/leave", None, GUARD))["status"] == 200
        assert w.endpoint(0) not in await w.lists(0)
        await asyncio.sleep(TTL / 2)
        assert not member.calls("tc/cluster/leave")


async def test_a_stopping_node_leaves_and_releases_at_every_peer() -> None:
    async with world() as w, spy(w) as one, spy(w) as two:
        await until(partial(sends, one, "tc/lease/renew", 2))
        two.script["/v1/tc/cluster/leave"] = REFUSAL
        w.nodes[0].terminate()
        assert await w.ended(0) == 0
        for each in (one, two):
            assert each.calls("tc/cluster/leave")
            assert each.calls("tc/lease/release")


async def test_a_node_sees_its_own_lease_and_takes_it_up() -> None:
    async with world() as w, spy(w) as member:
        await until(partial(sends, member, "tc/lease/renew", 2))
        w.nodes[0].kill()
        await w.ended(0)
        ahead = round(time.time() * 1000) + round(3000 * TTL)
        mine = {"leader_id": w.as_node(0).node_id, "leader_endpoint": w.endpoint(0), "term": 1001, "expires_at": ahead}
        member.script["/v1/tc/leader"] = (200, mine)
        member.heard.clear()
        w.start(0, LOCKD_JOIN=f"{w.endpoint(0)},{member.endpoint}")
        await w.ready(0)
        seen = await until(partial(leads, w))
        assert seen["term"] == 1001
        await until(partial(sends, member, "tc/lease/renew"))
        assert not member.calls("tc/lease/acquire")


async def test_a_host_name_that_does_not_fit_does_not_matter() -> None:
    async with world() as w, spy(w, hosts=("other.invalid",)) as member:
        for path in ("tc/cluster/announce", "tc/lease/renew", "tc/rm/register"):
            await until(partial(sends, member, path))
