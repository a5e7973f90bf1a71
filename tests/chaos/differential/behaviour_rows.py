"""What the two ends of a connection see: ends, delays, rates, silences."""

import asyncio

from tests.chaos.differential.rows import Seen, row
from tests.chaos.differential.stand import SHORT, Clock, Stand


@row
async def half_close_is_a_full_close(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await client.send(b"all I have")
    client.writer.write_eof()
    return {"up": await upstream.all(13), "down": await client.next()}


@row
async def a_reset_by_the_client_is_a_clean_close(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    client.abort()
    return {"up": await upstream.next()}


@row
async def a_reset_by_the_upstream_is_a_clean_close(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    upstream.abort()
    return {"down": await client.next()}


@row
async def without_an_upstream_the_client_is_closed(s: Stand) -> Seen:
    await s.api("PATCH", upstream="127.0.0.1:1")
    return {"down": await (await s.connect()).next()}


@row
async def disable_closes_and_enable_opens_the_same_port(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("latency", latency=60_000)
    await client.send(b"held")
    await asyncio.sleep(0.1)
    await s.api("PATCH", enabled=False)
    seen: Seen = {"down": await client.next(), "up": await upstream.next(), "new": await _connects(s)}
    await s.api("PATCH", enabled=True)
    seen["again"] = await _connects(s)
    seen["toxics"] = (await s.api("GET", "/toxics")).body
    return seen


async def _connects(s: Stand) -> str:
    try:
        await s.connect()
    except ConnectionRefusedError:
        return "refused"
    return "connected"


@row
async def a_new_upstream_ends_what_is_live(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.api("PATCH", upstream="localhost:1")
    return {"down": await client.next(), "up": await upstream.next()}


@row
async def latency(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("latency", latency=200)
    clock = Clock()
    await client.send(b"ping")
    seen: Seen = {"up": await upstream.next(), "up at": clock()}
    clock = Clock()
    await upstream.send(b"pong")
    return seen | {"down": await client.next(), "down at": clock()}


@row
async def two_latencies_add_up(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("latency", latency=100)
    await s.toxic("latency", latency=150, name="second")
    clock = Clock()
    await client.send(b"ping")
    return {"up": await upstream.next(), "up at": clock()}


@row
async def a_latency_below_zero_is_none(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("latency", latency=-200)
    clock = Clock()
    await client.send(b"ping")
    return {"up": await upstream.next(), "up at": clock()}


@row
async def chunks_in_a_row_are_not_added_up(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("latency", latency=150)
    clock = Clock()
    for number in range(5):
        await client.send(b"%d" % number)
        await asyncio.sleep(0.02)
    return {"first": await upstream.next(), "first at": clock(), "rest": await upstream.all(4), "last at": clock()}


@row
async def an_end_comes_behind_held_data(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("latency", latency=150)
    clock = Clock()
    await client.send(b"last words")
    client.writer.close()
    return {"up": await upstream.all(13), "at": clock()}


@row
async def removing_a_latency_flushes(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("latency", latency=60_000)
    for word in (b"one ", b"two ", b"three"):
        await client.send(word)
        await asyncio.sleep(0.02)
    quiet = await upstream.next(SHORT)
    clock = Clock()
    await s.remove()
    return {"quiet": quiet, "up": await upstream.all(13), "at": clock()}


@row
async def updating_a_latency_releases_the_chunk_in_hand(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("latency", latency=60_000)
    for word in (b"one", b"two"):
        await client.send(word)
        await asyncio.sleep(0.02)
    await s.update(latency=50_000)
    return {"first": await upstream.next(), "second": await upstream.next(SHORT)}


@row
async def jitter_stays_in_its_window(s: Stand) -> Seen:
    await s.toxic("latency", latency=40, jitter=20)

    async def samples() -> list[float]:
        client, upstream = await s.pair()
        taken = []
        for _ in range(10):
            clock = Clock()
            await client.send(b"x")
            await upstream.next()
            taken.append(clock())
        return taken

    every = [sample for taken in await asyncio.gather(*(samples() for _ in range(20))) for sample in taken]
    return {
        "not before": min(every) >= 0.0195,
        "spread": max(every) - min(every) >= 0.03,
        "mean": 0.036 <= sum(every) / len(every) <= 0.055,
    }


@row
async def bandwidth(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("bandwidth", rate=100)
    clock = Clock()
    await client.send(b"x" * 50_000)
    first, at = len(await upstream.next()), clock()
    return {"first": first, "first at": at, "rest": len(await upstream.all(50_000 - first)), "at": clock()}


@row
async def a_small_message_takes_the_time_of_its_bytes(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("bandwidth", rate=1)
    clock = Clock()
    await client.send(b"x" * 50)
    return {"up": len(await upstream.next()), "at": clock()}


@row
async def bandwidth_zero(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("bandwidth", rate=0)
    await client.send(b"data")
    return {"up": await upstream.next(SHORT)}


@row
async def slow_close(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("slow_close", "downstream", delay=300)
    clock = Clock()
    await upstream.send(b"data")
    seen: Seen = {"data": await client.next(), "data at": clock()}
    clock = Clock()
    upstream.writer.close()
    return seen | {"down": await client.next(), "down at": clock()}


@row
async def slow_close_leaves_the_other_direction_alone(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("slow_close", "downstream", delay=300)
    clock = Clock()
    client.writer.write_eof()
    seen: Seen = {"up": await upstream.next(), "up at": clock()}
    return seen | {"down": await client.next(), "down at": clock()}


@row
async def removing_a_slow_close_ends_the_wait(s: Stand) -> Seen:
    client, upstream = await s.pair()
    await s.toxic("slow_close", delay=60_000)
    client.writer.write_eof()
    quiet = await upstream.next(SHORT)
    await s.remove()
    return {"quiet": quiet, "up": await upstream.next(), "down": await client.next()}


@row
async def timeout_closes_after_silence(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    clock = Clock()
    await s.toxic("timeout", timeout=300)
    return {"up": await upstream.next(), "at": clock(), "down": await client.next()}


@row
async def dropped_data_restarts_a_timeout(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("timeout", timeout=300)
    clock = Clock()
    for _ in range(4):
        await client.send(b"lost")
        clock = Clock()
        await asyncio.sleep(0.1)
    await upstream.send(b"the other way")
    seen: Seen = {"flows": await client.next()}
    return seen | {"up": await upstream.next(), "at": clock(), "down": await client.next()}


@row
async def timeout_zero_never_closes_until_it_is_removed(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("timeout", timeout=0)
    await client.send(b"lost")
    await upstream.send(b"the other way")
    seen: Seen = {"flows": await client.next(), "up": await upstream.next(2 * SHORT)}
    await s.remove()
    return seen | {"up then": await upstream.next(), "down then": await client.next()}


@row
async def a_timeout_below_zero_is_zero(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("timeout", timeout=-100)
    await client.send(b"lost")
    return {"up": await upstream.next(2 * SHORT), "down": await client.next(0.01)}


@row
async def an_end_passes_a_timeout_at_once(s: Stand) -> Seen:
    client, upstream = await s.pair(linked=True)
    await s.toxic("timeout", timeout=60_000)
    clock = Clock()
    client.writer.write_eof()
    return {"up": await upstream.next(), "at": clock(), "down": await client.next()}


@row
async def removing_a_timeout_closes_even_the_spared(s: Stand) -> Seen:
    await s.toxic("timeout", toxicity=0, timeout=100)
    client, upstream = await s.pair(linked=True)
    await asyncio.sleep(0.2)
    await client.send(b"kept")
    seen: Seen = {"kept": await upstream.next()}
    await s.remove()
    return seen | {"up": await upstream.next(), "down": await client.next()}
