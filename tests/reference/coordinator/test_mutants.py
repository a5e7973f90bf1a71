"""Every mutant of the coordinator can be put into a node, and some show their violation."""

import asyncio
import signal

import pytest

from holdfast.reference.coordinator.components import Components
from holdfast.reference.coordinator.mutants.table import all_mutants, apply
from holdfast.reference.coordinator.node import Node
from holdfast.reference.coordinator.settings import Settings
from tests.reference.coordinator.world import ASSIGNED, HANDOFF, LOCK, World, job_id, until, world


@pytest.mark.parametrize("name", all_mutants())
async def test_a_node_can_be_made_with_every_mutant(name: str) -> None:
    """Scripts are assembled here, so a Lua body that names no function is found."""
    components = Components()
    apply(name, components)
    assert Node(Settings(), components).scripts.all


def test_every_mutant_names_the_rules_that_it_overrides() -> None:
    assert [name for name, mutant in all_mutants().items() if not mutant.seams()] == []


def test_mutants_are_numbered_without_a_gap() -> None:
    rows: dict[str, list[int]] = {}
    for mutant in all_mutants().values():
        rows.setdefault(mutant.requirement, []).append(mutant.number)
    assert [row for row, numbers in rows.items() if sorted(numbers) != list(range(1, len(numbers) + 1))] == []
    assert (len(rows), sum(map(len, rows.values()))) == (87, 176)


async def test_a_lock_that_is_renewed_by_set_is_stolen_back() -> None:
    async with world(VIOLATE="CO-LOCK-04/1") as w:
        await w.redis("SET", LOCK, "foreign", "PX", 5000)
        await w.leads("n0")


async def test_a_follower_that_dispatches_is_seen_while_nobody_leads() -> None:
    async with world(VIOLATE="CO-ROLE-02/2") as w:
        await w.redis("SET", LOCK, "foreign")
        await asyncio.sleep(0.7)
        job = await w.enqueue()
        await w.owned(job)


async def test_schedulers_on_all_nodes_make_several_jobs_of_one_due_time() -> None:
    async with world(3, VIOLATE="CO-ROLE-02/1") as w:

        async def several() -> bool:
            name = job_id()
            key = f"orchestrix:store:schedule:{name}"
            await w.redis("HSET", key, "queue", name, "intervalMs", "60000", "isEnabled", "true")
            await w.redis("ZADD", "orchestrix:store:schedules", await due_now(w), name)
            await asyncio.sleep(1)
            return len(await w.entries(f"orchestrix.job.dispatch.{name}")) > 1

        await until(several)


async def due_now(w: World) -> int:
    return int((await w.redis("TIME"))[0]) * 1000


async def test_a_global_status_channel_leaves_the_jobs_own_one_unread() -> None:
    async with world(VIOLATE="CO-CHAN-04/1") as w:
        job = await w.inject()
        await w.owned(job)
        await w.status(job, "Running")
        await asyncio.sleep(0.5)
        assert await w.has_status(job, "Dispatched")


async def test_doubled_offers_of_a_claim_in_two_steps_have_two_owners() -> None:
    async with world(2, VIOLATE="CO-ASSIGN-01/1") as w:

        async def both() -> bool:
            job = await w.inject()
            await w.inject(job)
            await asyncio.sleep(0.3)
            return job in await w.jobs_of("n0") and job in await w.jobs_of("n1")

        await until(both)


async def test_a_group_for_each_node_repeats_the_events_of_a_job() -> None:
    async with world(2, VIOLATE="CO-EVENT-02/1") as w:
        job = await w.inject()
        await w.owned(job)
        await w.say(job, "once")
        await w.logged(job, "once", "once")


async def test_a_draining_node_that_takes_back_its_jobs_acknowledges_to_itself() -> None:
    async with world(2, VIOLATE="CO-DRAIN-05/1") as w:
        jobs = [await w.inject() for _ in range(20)]
        await asyncio.gather(*(w.owned(job) for job in jobs))
        w.signal(0, signal.SIGTERM)

        async def itself() -> bool:
            return "n0" in [ack["newOwner"] for ack in await w.entries(f"{HANDOFF}.ack.n0")]

        await until(itself)


async def test_a_taker_of_every_copy_wanders() -> None:
    async with world(2, VIOLATE="CO-TAKE-01/2") as w:
        job = await w.inject()
        first = await w.owned(job)

        async def moved() -> bool:
            await w.send(HANDOFF, {"jobId": job, "reason": "NodeCrash", "fromNodeId": "long gone"})
            return await w.owner(job) != first

        await until(moved)


async def test_what_a_former_owner_left_pending_is_lost_when_nobody_looks() -> None:
    async with world(2, VIOLATE="CO-FAIL-03/2") as w:
        job = await w.inject()
        owner = await w.owned(job)
        await w.hold(job, owner, "in hand")
        w.kill_node(int(owner[1:]))
        await w.say(job, "later")
        await w.logged(job, "later")


async def test_an_assignment_read_from_the_end_of_the_stream_is_never_taken() -> None:
    async with world(0, VIOLATE="CO-FAIL-06/2") as w:
        early = await w.inject()
        await w.start(0)
        late = await w.inject()
        await w.owned(late)
        assert await w.owner(early) == ""
        assert len(await w.entries(ASSIGNED)) == 2
