"""What the two ends of a connection see: resets, limits, slices, chances, and what is counted."""

import asyncio
import re

from tests.chaos.differential.rows import Seen, row
from tests.chaos.differential.stand import SHORT, Clock, Stand


@row
async def reset_peer_on_a_new_connection(s: Stand) -> Seen:
    await s.toxic("reset_peer", timeout=150)
    client, upstream = await s.pair()
    seen: Seen = {"idle": await client.next(SHORT)}
    clock = Clock()
    await client.send(b"lost")
    return seen | {"up": await upstream.next(), "at": clock(), "down": await client.next()}


@row
async def reset_peer_on_a_live_connection(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("reset_peer", timeout=50)
    await client.send(b"lost")
    return {"up": await upstream.next(), "down": await client.next()}


@row
async def reset_peer_at_the_end_of_a_stream(s: Stand) -> Seen:
    await s.toxic("reset_peer", timeout=50)
    client, upstream = await s.pair()
    clock = Clock()
    client.writer.write_eof()
    return {"up": await upstream.next(), "at": clock()}


@row
async def a_connection_that_reset_peer_spares(s: Stand) -> Seen:
    await s.toxic("reset_peer", toxicity=0)
    client, upstream = await s.pair(linked=True)
    upstream.writer.close()
    return {"down": await client.next()}


@row
async def a_connection_after_reset_peer_was_removed(s: Stand) -> Seen:
    await s.toxic("reset_peer", "downstream")
    client, upstream = await s.pair()
    await client.send(b"up flows")
    seen: Seen = {"up": await upstream.next()}
    await s.remove()
    upstream.writer.close()
    return seen | {"down": await client.next()}


@row
async def removing_reset_peer_during_its_wait(s: Stand) -> Seen:
    await s.toxic("reset_peer", timeout=400)
    client, upstream = await s.pair()
    clock = Clock()
    await client.send(b"lost")
    await asyncio.sleep(0.05)
    await s.remove()
    answered = clock()
    return {"answered": answered, "up": await upstream.next(), "down": await client.next()}


@row
async def limit_data_reached_exactly(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("limit_data", bytes=10)
    await client.send(b"0123456789")
    return {"up": await upstream.all(13), "down": await client.next()}


@row
async def limit_data_exceeded(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("limit_data", bytes=10)
    await client.send(b"0123456789 and more")
    return {"up": await upstream.all(13)}


@row
async def limit_data_zero(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("limit_data", bytes=0)
    seen: Seen = {"idle": await client.next(SHORT)}
    await client.send(b"x")
    return seen | {"up": await upstream.next()}


@row
async def limit_data_lowered_below_its_count(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("limit_data", bytes=100)
    await client.send(b"0123456789")
    seen: Seen = {"up": await upstream.next()}
    await s.update(bytes=5)
    seen["idle"] = await upstream.next(SHORT)
    await client.send(b"more")
    return seen | {"then": await upstream.next()}


@row
async def slicer(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("slicer", average_size=10, size_variation=0, delay=15_000)
    clock = Clock()
    await client.send(b"x" * 100)
    pieces: list[int] = []
    while sum(pieces) < 100:
        pieces.append(len(await upstream.next()))
    return {"pieces": pieces, "at": clock()}


@row
async def noop(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("noop")
    await client.send(b"data")
    client.writer.close()
    return {"up": await upstream.all(7)}


@row
async def toxicity_is_drawn_for_each_connection(s: Stand) -> Seen:
    await s.toxic("limit_data", toxicity=0.5, bytes=0)
    hits = 0
    for _ in range(20):
        pairs = [await s.pair() for _ in range(10)]
        for client, _ in pairs:
            await client.send(b"x")
        hits += [await upstream.next() for _, upstream in pairs].count("end")
    return {"about half": 72 <= hits <= 128}


@row
async def a_toxic_in_front_of_another(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("limit_data", bytes=4)
    await s.toxic("latency", latency=150, name="behind")
    clock = Clock()
    await client.send(b"data and more")
    return {"up": await upstream.all(7), "at": clock()}


@row
async def a_close_by_a_toxic_lets_the_other_direction_finish(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("limit_data", bytes=4)
    await s.toxic("latency", "downstream", latency=200, name="down")
    clock = Clock()
    await upstream.send(b"reply")
    await asyncio.sleep(0.05)
    await client.send(b"data and more")
    return {"up": await upstream.all(7), "down": await client.all(8), "at": clock()}


@row
async def a_large_transfer_is_complete(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("latency", latency=20)
    size = 3 << 20
    sending = asyncio.ensure_future(client.send(b"x" * size))
    received = len(await upstream.all(size))
    await sending
    return {"bytes": received}


@row
async def bytes_in_the_metrics_when_a_connection_has_ended(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await client.send(b"12345")
    await upstream.all(5)
    await upstream.send(b"123")
    await client.all(3)
    client.writer.close()
    await upstream.next()
    await asyncio.sleep(0.2)
    text = (await s.subject.call("GET", "/metrics")).body
    found = re.findall(rf'toxiproxy_proxy_(\w+)_total{{direction="(\w+)",[^}}]*proxy="{s.name}"[^}}]*}} (\d+)', text)
    return {f"{family} {direction}": count for family, direction, count in found}
