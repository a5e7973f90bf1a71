"""Toxics over real sockets, with either kind of loop."""

import asyncio
import contextlib

import pytest

from tests.chaos.relay_bench import Clock, bench, fields, until
from tests.chaos.sockets import GRACE, PROBE, end_of, read, stays_silent

pytestmark = pytest.mark.usefixtures("runner")


async def test_bytes_pass_both_ways_and_are_counted_live() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        writer.write(b"hello")
        assert await read(up_reader, 5) == b"hello"
        up_writer.write(b"you too")
        assert await read(reader, 7) == b"you too"
        assert b.proxy.transport.tally() == {
            "connections": {"opened": 1, "open": 1, "refused": 0},
            "upstream": _traffic(5),
            "downstream": _traffic(7),
        }


def _traffic(size: int) -> dict[str, int]:
    return {
        "received_bytes": size,
        "bytes": size,
        "chunks": 1,
        "dropped_bytes": 0,
        "dropped_chunks": 0,
        "altered_chunks": 0,
    }


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
async def test_latency_holds_one_direction_for_its_time(stream: str) -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        b.toxic("latency", stream, latency=600)
        clock = Clock()
        writer.write(b"ping")
        await read(up_reader, 4)
        arrived = clock()
        up_writer.write(b"pong")
        await read(reader, 4)
        back = clock() - arrived
        slow, fast = (arrived, back) if stream == "upstream" else (back, arrived)
        assert slow >= 0.6
        assert fast < 0.6


async def test_two_latencies_add_up_and_chunks_in_a_row_do_not() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("latency", latency=100)
        b.proxy.add(fields(type="latency", name="second", stream="upstream", attributes={"latency": 150}))
        clock = Clock()
        for _ in range(20):
            writer.write(b"x")
            await asyncio.sleep(0.005)
        await read(up_reader, 1)
        assert clock() >= 0.25
        await read(up_reader, 19)
        assert clock() < 20 * 0.25


async def test_jitter_stays_inside_its_window_and_keeps_the_order() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("latency", latency=60, jitter=40)
        clock = Clock()
        for number in range(30):
            writer.write(b"%02d" % number)
            await asyncio.sleep(0.002)
        assert await read(up_reader, 2) == b"00"
        assert clock() >= 0.02
        assert await read(up_reader, 58) == b"".join(b"%02d" % number for number in range(1, 30))


async def test_an_update_releases_the_chunk_in_hand_and_times_the_rest_anew() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("latency", latency=60_000)
        writer.write(b"first")
        await until(lambda: b.tally("upstream", "received_bytes") == 5)
        writer.write(b"second")
        await until(lambda: b.tally("upstream", "received_bytes") == 11)
        b.update(toxic, latency=60_000)
        assert await read(up_reader, 5) == b"first"
        assert await stays_silent(up_reader)
        b.proxy.remove(toxic)
        assert await read(up_reader, 6) == b"second"


async def test_removing_hands_on_what_is_held_at_once_and_in_order() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("latency", latency=60_000)
        for number in range(10):
            writer.write(b"%d" % number)
            await until(lambda size=number + 1: b.tally("upstream", "received_bytes") == size)
        b.proxy.remove(toxic)
        writer.write(b"!")
        assert await read(up_reader, 11) == b"0123456789!"


async def test_a_close_comes_behind_held_data() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("latency", latency=200)
        clock = Clock()
        writer.write(b"last words")
        writer.close()
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"last words"
        assert clock() >= 0.2


async def test_bandwidth_takes_the_time_of_its_bytes() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("bandwidth", rate=100)
        clock = Clock()
        writer.write(b"x" * 60_000)
        await read(up_reader, 1)
        assert clock() >= 0.1
        await read(up_reader, 59_999)
        assert 0.6 <= clock() < 0.6 + GRACE


@pytest.mark.parametrize("rate", [0, -1])
async def test_no_bandwidth_means_no_limit(rate: int) -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("bandwidth", rate=rate)
        writer.write(b"x" * 1_000_000)
        assert len(await read(up_reader, 1_000_000)) == 1_000_000


async def test_a_slow_path_slows_the_sender_down() -> None:
    async with bench() as b:
        (_, writer), _ = await b.connection()
        b.toxic("bandwidth", rate=1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            for _ in range(64):
                writer.write(b"x" * (1 << 20))
                async with asyncio.timeout(PROBE):
                    await writer.drain()
                sent += 1
        assert sent < 64
        assert b.tally("upstream", "received_bytes") < 2 << 20


async def test_slow_close_holds_the_end_and_nothing_else() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("slow_close", delay=600)
        clock = Clock()
        writer.write(b"data")
        assert await read(up_reader, 4) == b"data"
        assert clock() < 0.6
        clock = Clock()
        writer.close()
        assert await end_of(up_reader) == "end"
        assert clock() >= 0.6


async def test_removing_a_slow_close_lets_the_end_through() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("slow_close", delay=60_000)
        writer.close()
        assert await stays_silent(up_reader)
        b.update(toxic, delay=50_000)
        assert await stays_silent(up_reader)
        b.proxy.remove(toxic)
        assert await end_of(up_reader) == "end"


async def test_timeout_drops_and_closes_after_silence() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        b.toxic("timeout", timeout=1000)
        since_first = Clock()
        for _ in range(3):
            since_last = Clock()
            writer.write(b"lost")
            await asyncio.sleep(0.25)
        up_writer.write(b"the other way")
        assert await read(reader, 13) == b"the other way"
        assert await end_of(up_reader) == "end"
        assert since_last() >= 1.0
        assert since_first() >= 1.5
        assert await end_of(reader) == "end"
        assert b.tally("upstream", "dropped_bytes") == 12
        assert b.tally("upstream", "bytes") == 0


async def test_timeout_zero_drops_for_ever_and_its_removal_closes_even_the_spared() -> None:
    async with bench() as b:
        (hit, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("timeout", timeout=0)
        writer.write(b"lost")
        assert await stays_silent(up_reader)
        b.update(toxic, toxicity=0)
        (spared, writer), (up_reader, _) = await b.connection()
        writer.write(b"kept")
        assert await read(up_reader, 4) == b"kept"
        b.proxy.remove(toxic)
        assert await end_of(hit) == "end"
        assert await end_of(spared) == "end"


@pytest.mark.parametrize("early", [True, False])
async def test_reset_peer_resets_only_what_was_opened_under_it(early: bool) -> None:
    async with bench() as b:
        if early:
            b.toxic("reset_peer", timeout=100)
        (reader, writer), (up_reader, _) = await b.connection()
        if not early:
            b.toxic("reset_peer", timeout=100)
        assert await stays_silent(reader)
        clock = Clock()
        writer.write(b"lost")
        assert await end_of(up_reader) == ("reset" if early else "end")
        assert clock() >= 0.1
        assert await end_of(reader) == ("reset" if early else "end")
        assert b.tally("upstream", "dropped_bytes") == 4


async def test_a_spared_connection_is_not_made_to_reset() -> None:
    async with bench() as b:
        b.toxic("reset_peer", toxicity=0)
        (reader, writer), (up_reader, up_writer) = await b.connection()
        writer.write(b"kept")
        assert await read(up_reader, 4) == b"kept"
        up_writer.close()
        assert await end_of(reader) == "end"


async def test_limit_data_passes_exactly_so_much_and_closes() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, _) = await b.connection()
        b.toxic("limit_data", bytes=10)
        writer.write(b"1234567")
        assert await read(up_reader, 7) == b"1234567"
        writer.write(b"8901234")
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"890"
        assert await end_of(reader) == "end"


async def test_the_count_of_limit_data_survives_an_update() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("limit_data", bytes=100)
        writer.write(b"12345")
        assert await read(up_reader, 5) == b"12345"
        b.update(toxic, bytes=8)
        writer.write(b"6789")
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"678"


async def test_slicer_cuts_small_and_keeps_every_byte() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("slicer", average_size=10, size_variation=0, delay=5000)
        sent = bytes(range(100))
        clock = Clock()
        writer.write(sent)
        assert await read(up_reader, 100) == sent
        assert b.tally("upstream", "chunks") == 16
        assert clock() >= 15 * 0.005


async def test_blackhole_keeps_the_sockets_and_delivers_on_healing() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        toxics = [b.toxic("blackhole", stream) for stream in ("upstream", "downstream")]
        writer.write(b"held up")
        up_writer.write(b"held down")
        assert await stays_silent(up_reader)
        assert await stays_silent(reader)
        assert b.tally("upstream", "bytes") == 0
        for toxic in toxics:
            b.proxy.remove(toxic)
        assert await read(up_reader, 7) == b"held up"
        assert await read(reader, 9) == b"held down"


async def test_blackhole_does_not_even_notice_that_a_side_has_left() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("blackhole")
        writer.write(b"last words")
        writer.close()
        assert await stays_silent(up_reader)
        b.proxy.remove(toxic)
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"last words"


async def test_a_newcomer_in_a_blackhole_is_held_too() -> None:
    async with bench() as b:
        toxic = b.toxic("blackhole")
        (_, writer), (up_reader, _) = await b.connection()
        writer.write(b"x" * 300_000)
        assert await stays_silent(up_reader)
        b.proxy.remove(toxic)
        assert len(await read(up_reader, 300_000)) == 300_000


async def test_what_an_upstream_says_at_once_meets_the_toxics_too() -> None:
    async with bench() as b:
        b.toxic("timeout", "downstream")
        b.greeting = b"welcome"
        clients = [(await b.connection())[0] for _ in range(20)]
        await until(lambda: b.tally("downstream", "received_bytes") == 20 * 7)
        assert b.tally("downstream", "bytes") == 0
        assert await stays_silent(clients[0][0])
