"""Three nodes that can be cut off from each other."""

import asyncio
from functools import partial
from typing import Any

from tests.reference.lockd.switchboard import Switchboard, switchboard
from tests.reference.lockd.world import TTL, XID, World, until, world

NAMES = ("node-a.test", "node-b.test", "node-c.test")


async def start(w: World, board: Switchboard) -> None:
    for name in NAMES:
        board.ports[name] = w.ports[w.add()]
    urls = [f"https://{name}:{port}" for name, port in board.ports.items()]
    for number, name in enumerate(NAMES):
        proxy = await board.proxy_for(name)
        w.start(number, LOCKD_SELF=urls[number], LOCKD_JOIN=",".join(urls), HTTPS_PROXY=proxy, NO_PROXY="")
    await w.ready(0, 1, 2)
    await until(partial(agreed, w, *range(3)), 30)


async def agreed(w: World, *numbers: int) -> Any:
    lists = [await w.lists(number) for number in numbers]
    return await w.agreed(*numbers) if all(len(each) == 3 for each in lists) else None


async def decides(w: World, number: int) -> dict[str, Any]:
    return await w.client.post(number, "txn/decide", {"txn_id": XID, "state": "commit"})


async def test_an_isolated_leader_falls_silent_and_follows_when_healed() -> None:
    async with switchboard() as board, world(0) as w:
        await start(w, board)
        seen = await w.agreed(0, 1, 2)
        assert seen
        leader = w.number_of(seen)
        rest = [number for number in range(3) if number != leader]
        board.isolate(NAMES[leader])
        await asyncio.sleep(TTL + 0.3)
        assert (await decides(w, leader))["status"] in {409, 503}

        async def replaced() -> bool:
            now = await w.agreed(*rest)
            return bool(now and now["term"] > seen["term"])

        await until(replaced, 2 * TTL)
        assert (await decides(w, leader))["status"] in {409, 503}
        board.heal()
        healed = await until(partial(w.agreed, 0, 1, 2), 2 * TTL)
        assert healed["term"] > seen["term"]
        assert w.number_of(healed) != leader
        stale = {"txn_id": XID, "tc_term": seen["term"], "participants": [{"key": "k"}]}
        for number in range(3):
            assert (await w.client.post(number, "txn/commit", stale))["error"] == "tc_term_stale"


async def test_an_isolated_follower_comes_back_without_an_election() -> None:
    async with switchboard() as board, world(0) as w:
        await start(w, board)
        seen = await w.agreed(0, 1, 2)
        assert seen
        follower = (w.number_of(seen) + 1) % 3
        board.isolate(NAMES[follower])
        await asyncio.sleep(1.5 * TTL)
        assert (await decides(w, follower))["status"] in {409, 503}
        board.heal()
        healed = await until(partial(w.agreed, 0, 1, 2), 2 * TTL)
        assert (healed["leader_id"], healed["term"]) == (seen["leader_id"], seen["term"])
