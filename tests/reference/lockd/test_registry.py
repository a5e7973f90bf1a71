"""RM registry and transactions on real nodes."""

import asyncio
import signal
from functools import partial

from tests.reference.lockd.world import REPLICA, TTL, XID, World, cluster, until, world

E = "https://127.0.0.1:9"
PAIR = {"backend_hash": "island-x", "endpoint": E + "/"}
OTHER_XID = "9m4e2mr0ui3e8a215n50"


async def own_hash(w: World, number: int) -> str:
    async def registered() -> str | None:
        for backend, endpoints in (await w.backends(number)).items():
            if w.endpoint(number) in endpoints:
                return backend
        return None

    found: str = await until(registered)
    return found


async def test_every_node_registers_everywhere_by_itself() -> None:
    async with cluster() as w:

        async def complete() -> bool:
            return all([len(await w.backends(number)) == 3 for number in range(3)])

        await until(complete)
        assert await w.backends(0) == await w.backends(1) == await w.backends(2)


async def test_a_change_is_on_every_member_before_the_answer() -> None:
    async with cluster() as w:
        caller = w.server()
        first = await caller.post(0, "tc/rm/register", PAIR)
        assert (first["status"], first["endpoints"]) == (200, [E])
        for number in range(3):
            assert (await w.backends(number))["island-x"] == [E]
        assert (await caller.post(1, "tc/rm/register", PAIR))["updated_at_unix"] <= first["updated_at_unix"] + 1000
        gone = await caller.post(2, "tc/rm/unregister", PAIR)
        assert (gone["status"], gone["endpoints"]) == (200, None)
        for number in range(3):
            assert "island-x" not in await w.backends(number)


async def test_a_dead_member_blocks_changes_until_it_expires() -> None:
    async with cluster() as w:
        caller = w.server()
        w.signal(2, signal.SIGKILL)
        for verb in ("register", "unregister"):
            refused = await caller.post(0, f"tc/rm/{verb}", PAIR)
            assert (refused["status"], refused["error"]) == (502, "tc_rm_replication_failed")
        for number in (0, 1):
            assert "island-x" not in await w.backends(number)

        async def taken() -> bool:
            return bool((await caller.post(0, "tc/rm/register", PAIR))["status"] == 200)

        await until(taken, 4 * TTL)
        assert w.endpoint(2) not in await w.lists(0)


async def test_a_replica_is_applied_here_only() -> None:
    async with cluster() as w:
        caller = w.server()
        assert (await caller.post(0, "tc/rm/register", PAIR, REPLICA))["status"] == 200
        assert "island-x" in await w.backends(0)
        assert "island-x" not in await w.backends(1)


async def test_an_apply_needs_the_current_term() -> None:
    async with world() as w:
        seen = await until(partial(w.leader, 0))
        term, backend = seen["term"], await own_hash(w, 0)
        body = {"txn_id": XID, "participants": [{"namespace": "default", "key": "k", "backend_hash": backend}]}
        for given, status, error in ((0, 400, "tc_term_required"), (term + 1, 409, "tc_term_stale")):
            refused = await w.client.post(0, "txn/commit", {**body, "tc_term": given})
            assert (refused["status"], refused["error"]) == (status, error)
        for _ in range(2):
            assert await w.client.post(0, "txn/commit", {**body, "tc_term": term}) == {
                "txn_id": XID,
                "state": "commit",
                "status": 200,
            }
        assert (await w.client.post(0, "txn/rollback", {**body, "tc_term": term}))["error"] == "txn_conflict"
        other = {**body, "tc_term": term, "target_backend_hash": "elsewhere"}
        assert (await w.client.post(0, "txn/commit", other))["error"] == "txn_backend_mismatch"


async def test_a_decision_is_applied_at_the_islands_of_its_participants() -> None:
    async with cluster() as w:
        seen = await w.agreed(0, 1, 2)
        assert seen
        leader = w.number_of(seen)
        rm = (leader + 1) % 3
        backend = await own_hash(w, rm)
        await until(partial(listed, w, leader, backend))
        body = {"txn_id": XID, "state": "commit", "participants": [{"key": "k", "backend_hash": backend}], "tc_term": 1}
        assert (await w.client.post(leader, "txn/decide", body))["status"] == 200
        assert (await w.client.post(rm, "txn/replay", {"txn_id": XID}))["state"] == "commit"
        lost = {**body, "txn_id": OTHER_XID, "participants": [{"key": "k", "backend_hash": "nowhere"}]}
        assert (await w.client.post(leader, "txn/decide", lost))["error"] == "txn_fanout_failed"
        assert (await w.client.post(leader, "txn/replay", {"txn_id": OTHER_XID}))["state"] == "commit"


async def listed(w: World, number: int, backend: str) -> bool:
    return backend in await w.backends(number)


async def test_leases_and_registry_outlive_the_process_but_terms_do_not() -> None:
    async with world(LOCKD_STORE="sqlite://{folder}/store.db") as w:
        caller = w.server()
        given = await caller.announce(0, E)
        await caller.post(0, "tc/rm/register", PAIR, REPLICA)
        w.signal(0, signal.SIGKILL)
        await w.ended(0)
        w.start(0)
        await w.ready(0)
        assert E in await w.lists(0)
        assert (await w.backends(0))["island-x"] == [E]

        async def gone() -> bool:
            return E not in await w.lists(0)

        await until(gone, 4 * TTL)
        now = await w.client.get(0, "tc/cluster/list")
        assert now["updated_at_unix"] >= given["expires_at_unix"] - 2 * TTL * 1000
        assert (await until(partial(w.leader, 0)))["term"] == 1


async def test_the_nodes_of_an_island_share_leases_registry_and_hash() -> None:
    async with world(2, LOCKD_STORE="sqlite://{folder}/store.db") as w:
        caller = w.server()
        await caller.announce(0, E)
        assert E in await w.lists(1)
        await caller.leave(1)
        assert E not in await w.lists(0)

        async def one_hash() -> bool:
            both = sorted([w.endpoint(0), w.endpoint(1)])
            return all([list((await w.backends(number)).values()) == [both] for number in (0, 1)])

        await until(one_hash)
        calls = [
            caller.post(number, "tc/rm/register", {"backend_hash": "h", "endpoint": f"https://h:{port}"}, REPLICA)
            for port in range(1, 11)
            for number in (port % 2,)
        ]
        await asyncio.gather(*calls)
        assert len((await w.backends(0))["h"]) == 10
