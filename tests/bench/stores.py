"""python -m tests.bench.stores: how long a set with Sentinels takes with and without the pool; how many a minute."""

# ruff: noqa: T201 - it reports on its standard output

import asyncio
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.store_pool import READY, StorePool
from holdfast.fixtures.stores import StoreSet
from holdfast.target.store_section import StorePlan

PLAN = StorePlan("sentinel", 1, 3, 2, 1.0, 6.0, "mymaster")
SETS, TAKERS = 24, 12


async def _report(guardian: Guardian, ports: PortPool) -> None:
    await guardian.attach()

    async def start(plan: StorePlan, name: str) -> StoreSet:
        return await StoreSet.start(guardian, ports, plan, name)

    alone, cpu = [], []
    for number in range(5):
        before = time.monotonic()
        store = await start(PLAN, f"alone-{number}")
        alone.append(time.monotonic() - before)
        cpu.append(sum(_cpu(pid) for pid in store.pids() if pid))
        await store.close()
    print(f"one set, started when it is wanted: {_median(alone)} s; processor time of its members {_median(cpu)} s")

    pool = StorePool(start)
    pool.expect(PLAN, READY)
    while len(pool._shelf(PLAN).ready) < READY:  # noqa: ASYNC110 - a poll, before the clock runs
        await asyncio.sleep(0.05)
    taken = [await _take(pool) for _ in range(READY)]
    await pool.close()
    print(f"one set from the pool: {1000 * _median(taken, 6):.2f} ms")
    for at_once in (1, 2, 4, 6, 8):
        print(f"{at_once} starts at a time: {await _a_minute(StorePool(start, at_once=at_once)):.0f} sets a minute")


async def _a_minute(pool: StorePool) -> float:
    """Let many want a set at a time, as checks do; count what they get."""
    pool.expect(PLAN, SETS)
    places, before = asyncio.Semaphore(TAKERS), time.monotonic()

    async def taker() -> None:
        async with places:
            await _take(pool)

    await asyncio.gather(*(taker() for _ in range(SETS)))
    rate = SETS / (time.monotonic() - before) * 60
    await pool.close()
    return rate


async def _take(pool: StorePool) -> float:
    before = time.monotonic()
    store = await pool.take(PLAN)
    took = time.monotonic() - before
    await store.close()
    return took


def _cpu(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _median(values: Sequence[float], digits: int = 2) -> float:
    return round(statistics.median(values), digits)


def main() -> None:
    guardian = Guardian.launch()
    try:
        with PortPool() as ports:
            asyncio.run(_report(guardian, ports))
    finally:
        guardian.close()


if __name__ == "__main__":
    main()
