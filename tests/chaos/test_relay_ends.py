"""How connections through the relay begin and end: refused, reset, half closed, without an upstream."""

import asyncio
import contextlib

import pytest

from tests.chaos.relay_bench import Bench, Clock, bench, until
from tests.chaos.sockets import GRACE, abort, end_of, read

pytestmark = pytest.mark.usefixtures("runner")


async def test_refuse_turns_newcomers_away_and_leaves_the_others_alone() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        toxic = b.toxic("refuse")
        port = b.port
        with pytest.raises(ConnectionRefusedError):
            await b.client()
        writer.write(b"still here")
        assert await read(up_reader, 10) == b"still here"
        b.proxy.remove(toxic)
        assert b.port == port
        await b.connection()


async def test_refuse_by_chance_resets_after_the_fact() -> None:
    async with bench(seed=3) as b:
        b.toxic("refuse", toxicity=0.5)
        ends = [await _turned_away(b) for _ in range(20)]
        assert {True, False} == set(ends)
        assert b.tally("connections", "refused") == ends.count(True)


async def _turned_away(b: Bench) -> bool:
    opened, refused = b.tally("connections", "opened"), b.tally("connections", "refused")
    with contextlib.suppress(ConnectionResetError):
        await b.client()
    await until(lambda: b.tally("connections", "opened") + b.tally("connections", "refused") > opened + refused)
    return b.tally("connections", "refused") > refused


async def test_half_close_is_a_full_close_unless_strict() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        writer.write_eof()
        assert await end_of(up_reader) == "end"
        up_writer.write(b"too late")
        assert await asyncio.wait_for(reader.read(), GRACE) == b""
    async with bench(strict=True) as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        b.toxic("latency", latency=50)
        writer.write_eof()
        assert await end_of(up_reader) == "end"
        up_writer.write(b"in time")
        assert await read(reader, 7) == b"in time"


@pytest.mark.parametrize("strict", [True, False])
async def test_a_reset_is_a_clean_close_unless_strict(strict: bool) -> None:
    async with bench(strict=strict) as b:
        (_, writer), (up_reader, _) = await b.connection()
        b.toxic("noop")
        abort(writer)
        assert await end_of(up_reader) == ("reset" if strict else "end")


@pytest.mark.parametrize("strict", [True, False])
async def test_without_an_upstream_the_client_is_turned_away(strict: bool) -> None:
    async with bench(strict=strict) as b:
        b.proxy.transport.upstream = "127.0.0.1:1"
        reader, _ = await b.client()
        assert await end_of(reader) == ("reset" if strict else "end")
        assert b.tally("connections", "refused") == 1


@pytest.mark.parametrize("upstream", ["rubbish", "", "a:b:c", "no.such.host.invalid:1", "127.0.0.1:99999"])
async def test_an_upstream_that_means_nothing_fails_at_connect_time(upstream: str) -> None:
    async with bench() as b:
        b.proxy.transport.upstream = upstream
        reader, _ = await b.client()
        assert await end_of(reader) == "end"


async def test_a_live_reset_resets_both_sides_and_lets_newcomers_in() -> None:
    async with bench() as b:
        (reader, _), (up_reader, _) = await b.connection()
        assert await b.proxy.transport.reset() == 1
        assert await end_of(reader) == "reset"
        assert await end_of(up_reader) == "reset"
        await b.connection()


async def test_disable_closes_cleanly_and_enable_takes_the_same_port_with_its_toxics() -> None:
    async with bench() as b:
        (reader, _), (up_reader, _) = await b.connection()
        b.toxic("latency", latency=100)
        port = b.port
        await b.proxy.stop()
        assert await end_of(reader) == "end"
        assert await end_of(up_reader) == "end"
        with pytest.raises(ConnectionRefusedError):
            await b.client()
        await b.proxy.start()
        assert b.port == port
        (_, writer), (up_reader, _) = await b.connection()
        clock = Clock()
        writer.write(b"x")
        await read(up_reader, 1)
        assert clock() >= 0.1
