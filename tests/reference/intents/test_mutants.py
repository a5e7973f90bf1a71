"""Every mutant of the intents reference can be put into both processes, and some show their violation."""

import asyncio

import pytest

from holdfast.reference.intents.api import Api
from holdfast.reference.intents.components import Components
from holdfast.reference.intents.mutants.table import all_mutants, apply
from holdfast.reference.intents.settings import Settings
from holdfast.reference.intents.worker import Worker
from tests.reference.intents.world import World, channel, world


@pytest.mark.parametrize("name", [name for name in all_mutants() if name != "IN-KEY-05/1"])
async def test_api_and_worker_can_be_made_with_every_mutant(name: str) -> None:
    """Scripts are assembled here, so a Lua body that names no function is found."""
    for process in (Api, Worker):
        components = Components()
        apply(name, components)
        assert process(Settings(idem_secret="a secret"), components).scripts.all  # noqa: S106  # guards nothing
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


def test_every_mutant_names_the_rules_that_it_overrides() -> None:
    assert [name for name, mutant in all_mutants().items() if not mutant.seams()] == []


def test_mutants_are_numbered_without_a_gap() -> None:
    rows: dict[str, list[int]] = {}
    for mutant in all_mutants().values():
        rows.setdefault(mutant.requirement, []).append(mutant.number)
    assert [row for row, numbers in rows.items() if sorted(numbers) != list(range(1, len(numbers) + 1))] == []
    assert (len(rows), sum(map(len, rows.values()))) == (82, 224)


async def herd(w: World) -> int:
    ref = channel()
    answers = await asyncio.gather(*(w.start(ref, node=n % 2) for n in range(40)))
    return len({answer["sessionId"] for answer in answers if answer["http"] == 202})


@pytest.mark.parametrize("name", ["IN-HERD-01/2", "IN-HERD-04/1", "IN-HERD-04/2"])
async def test_a_herd_sees_that_look_up_and_insert_are_not_one_step(name: str) -> None:
    async with world(apis=2, VIOLATE=name) as w:
        assert await herd(w) > 1


async def test_a_worker_that_owns_by_its_own_name_shares_every_lease() -> None:
    async with world(VIOLATE="IN-DEDUP-01/2") as w:
        ref = channel()
        await w.ready(ref, "high")
        await w.ready(ref, "low")


async def test_a_stop_that_leaves_the_service_lease_is_seen() -> None:
    async with world(VIOLATE="IN-RUN-06/1") as w:
        ref = channel()
        session = await w.ready(ref)
        await w.stop(session)
        await w.shows(session, "STOPPED")
        assert list(await w.leases()) == [f"lease:service:{ref}"]
