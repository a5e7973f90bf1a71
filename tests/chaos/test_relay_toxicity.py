"""Which connections a toxic hits: drawn for each, again when the toxic is restarted, the same with the same seed."""

import random

from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.programs import sizes
from holdfast.chaos.relay.stage import Work
from holdfast.chaos.relay.toxic import Toxic
from tests.chaos.relay_bench import Bench, bench, until


async def hits(b: Bench, count: int) -> list[bool]:
    """Open `count` connections; return which of them lose what they send."""
    return [await hit(b) for _ in range(count)]


async def hit(b: Bench) -> bool:
    (_, writer), _ = await b.connection()
    sent, dropped = b.tally("upstream", "bytes"), b.tally("upstream", "dropped_bytes")
    writer.write(b"x")
    await until(lambda: b.tally("upstream", "bytes") + b.tally("upstream", "dropped_bytes") > sent + dropped)
    return b.tally("upstream", "dropped_bytes") > dropped


async def test_a_toxicity_of_a_half_hits_about_half_and_stays_with_the_connection() -> None:
    async with bench(seed=1) as b:
        b.toxic("timeout", toxicity=0.5)
        fates = await hits(b, 100)
        assert 30 <= sum(fates) <= 70  # four sigma
        for client in b.writers[:200:2]:
            client.write(b"y" * 9)
        await until(lambda: b.tally("upstream", "received_bytes") == 1000)
        assert b.tally("upstream", "dropped_bytes") == 10 * sum(fates)


async def test_the_same_seed_draws_the_same() -> None:
    drawn = []
    for seed in (5, 5, 6):
        async with bench(seed=seed) as b:
            b.toxic("timeout", toxicity=0.5)
            drawn.append(await hits(b, 20))
    assert drawn[0] == drawn[1] != drawn[2]


async def test_every_update_draws_again() -> None:
    async with bench(seed=2) as b:
        toxic = b.toxic("timeout", toxicity=0.5)
        (_, writer), _ = await b.connection()
        fates = set()
        for number in range(1, 21):
            dropped = b.tally("upstream", "dropped_bytes")
            writer.write(b"x")
            await until(lambda total=number: b.tally("upstream", "received_bytes") == total)
            fates.add(b.tally("upstream", "dropped_bytes") > dropped)
            b.update(toxic)
        assert fates == {True, False}


async def test_never_and_always_have_no_range() -> None:
    async with bench() as b:
        toxic = b.toxic("timeout", toxicity=-1)
        assert not any(await hits(b, 5))
        b.update(toxic, toxicity=7.25)
        assert all(await hits(b, 5))


async def test_a_change_on_one_proxy_does_not_shift_the_draws_of_a_connection() -> None:
    drawn = []
    for noise in (0, 3):
        async with bench(seed=9) as b:
            b.toxic("timeout", toxicity=0.5)
            for _ in range(noise):
                b.toxic("noop", "downstream", toxicity=0.5).name = f"noise {_}"
            drawn.append(await hits(b, 20))
    assert drawn[0] == drawn[1]


class NoEffects(Effects):
    """What a relay that only pretends would be; the seam is one class."""

    def tcp(self, _: Toxic) -> Work:
        return self.spared()


async def test_effects_come_from_one_place() -> None:
    async with bench(effects=NoEffects()) as b:
        b.toxic("timeout")
        assert not any(await hits(b, 2))
    async with bench() as b:
        b.toxic("timeout")
        assert all(await hits(b, 2))


def test_a_slice_is_never_larger_than_average_and_variation() -> None:
    for seed in range(50):
        pieces = list(sizes(32_768, 100, 30, random.Random(seed)))
        assert sum(pieces) == 32_768
        assert min(pieces) > 0
        assert max(pieces) <= 130
    assert list(sizes(100, 10, 0, random.Random(0))) == [6, 6, 6, 7] * 4
