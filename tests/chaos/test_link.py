"""Links on the test's own loop, over real sockets, with either kind of loop."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from holdfast.chaos.links.flow import HELD_LIMIT
from holdfast.chaos.links.link import Link
from tests.chaos.sockets import GRACE, PROBE, abort, read, stays_silent

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

pytestmark = pytest.mark.usefixtures("runner")


class Upstream:
    """A server whose connections the test reads and writes itself."""

    def __init__(self) -> None:
        self.accepted: asyncio.Queue[Streams] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        await self.accepted.put((reader, writer))

    async def next(self) -> Streams:
        return await asyncio.wait_for(self.accepted.get(), GRACE)


class Bench:
    def __init__(self, link: Link, upstream: Upstream) -> None:
        self.link = link
        self.upstream = upstream
        self.writers: list[asyncio.StreamWriter] = []

    async def client(self) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.link.port)
        self.writers.append(writer)
        return reader, writer

    async def connection(self) -> tuple[Streams, Streams]:
        client = await self.client()
        return client, await self.upstream.next()


@contextlib.asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    upstream = Upstream()
    server = await asyncio.start_server(upstream.take, "127.0.0.1", 0)
    link = Link("127.0.0.1", server.sockets[0].getsockname()[1])
    link.listen()
    made = Bench(link, upstream)
    try:
        yield made
    finally:
        await link.close()
        server.close()
        for writer in [*made.writers, *upstream.writers]:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def is_reset(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.read(1), GRACE)
    except ConnectionResetError:
        return True
    return False


async def newcomer_is_reset(b: Bench) -> bool:
    try:
        reader, _ = await b.client()
    except ConnectionResetError:  # it came before connect() had looked
        return True
    return await is_reset(reader)


async def test_bytes_pass_both_ways_and_are_counted() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        writer.write(b"hello")
        assert await read(up_reader, 5) == b"hello"
        up_writer.write(b"you too")
        assert await read(reader, 7) == b"you too"

        counters = await b.link.counters()
        assert (counters.bytes_up, counters.bytes_down) == (5, 7)
        assert (counters.chunks_up, counters.chunks_down) == (1, 1)
        assert (counters.opened, counters.open, counters.refused) == (1, 1, 0)


async def test_a_closed_connection_is_open_no_more() -> None:
    async with bench() as b:
        (_, writer), (up_reader, up_writer) = await b.connection()
        writer.close()
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b""
        up_writer.close()
        await until_open(b.link, 0)
        assert (await b.link.counters()).opened == 1


async def until_open(link: Link, count: int) -> None:
    async with asyncio.timeout(GRACE):
        while (await link.counters()).open != count:  # noqa: ASYNC110 - what is waited for happens in the kernel
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("direction", "up", "down"), [("both", 1, 1), ("up", 1, 0), ("down", 0, 1)])
async def test_a_delay_holds_every_chunk_for_its_time(direction: str, up: int, down: int) -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        await b.link.delay(0.3, direction=direction)

        started = time.monotonic()
        writer.write(b"ping")
        await read(up_reader, 4)
        arrived = time.monotonic()
        up_writer.write(b"pong")
        await read(reader, 4)
        back = time.monotonic()

        assert 0.3 * up <= arrived - started < 0.3 * up + GRACE
        assert 0.3 * down <= back - arrived < 0.3 * down + GRACE
        if not up:
            assert arrived - started < 0.3
        if not down:
            assert back - arrived < 0.3


async def test_a_shorter_delay_lets_nothing_overtake() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        for index, seconds in enumerate((0.4, 0.2, 0.0)):
            await b.link.delay(seconds)
            writer.write(b"%d" % index)
            await asyncio.sleep(0.02)
        started = time.monotonic()
        assert await read(up_reader, 3) == b"012"
        assert time.monotonic() - started > 0.2  # the first kept the delay it was given


async def test_jitter_changes_delays_and_keeps_the_order() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        await b.link.delay(0.05, jitter=0.05)
        sent = b"".join(b"%03d" % number for number in range(50))
        for at in range(0, len(sent), 3):
            writer.write(sent[at : at + 3])
            await asyncio.sleep(0.002)
        assert await read(up_reader, len(sent)) == sent


async def test_a_stall_holds_bytes_and_heal_delivers_them_in_order() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        await b.link.stall()
        for part in (b"one ", b"two ", b"three"):
            writer.write(part)
            await asyncio.sleep(0.01)
        up_writer.write(b"down")
        assert await stays_silent(up_reader)
        assert await stays_silent(reader)
        assert (await b.link.counters()).bytes_up == 0

        await b.link.heal()
        assert await read(up_reader, 13) == b"one two three"
        assert await read(reader, 4) == b"down"
        assert (await b.link.counters()).bytes_up == 13


async def test_a_stalled_link_accepts_newcomers_and_holds_their_bytes() -> None:
    async with bench() as b:
        await b.link.stall()
        (_, writer), (up_reader, _) = await b.connection()
        writer.write(b"late")
        assert await stays_silent(up_reader)
        await b.link.heal()
        assert await read(up_reader, 4) == b"late"


async def test_a_stall_of_one_direction_leaves_the_other_alone() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        await b.link.stall(direction="down")
        writer.write(b"question")
        assert await read(up_reader, 8) == b"question"
        up_writer.write(b"answer")
        assert await stays_silent(reader)
        await b.link.heal()
        assert await read(reader, 6) == b"answer"


async def test_bytes_of_a_client_that_left_during_a_stall_still_arrive() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        await b.link.stall()
        writer.write(b"last words")
        writer.close()
        assert await stays_silent(up_reader)
        await b.link.heal()
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"last words"


async def test_refuse_resets_what_is_open_and_refuses_newcomers_until_heal() -> None:
    async with bench() as b:
        (reader, _), (up_reader, _) = await b.connection()
        await b.link.refuse()
        with pytest.raises(ConnectionRefusedError):
            await b.client()
        assert await is_reset(reader)
        assert await is_reset(up_reader)
        assert (await b.link.counters()).open == 0

        await b.link.heal()
        (_, writer), (up_reader, _) = await b.connection()
        writer.write(b"again")
        assert await read(up_reader, 5) == b"again"


async def test_cut_resets_what_is_open_and_every_newcomer_until_heal() -> None:
    async with bench() as b:
        (reader, _), (up_reader, _) = await b.connection()
        await b.link.cut()
        assert await is_reset(reader)
        assert await is_reset(up_reader)
        assert await newcomer_is_reset(b)
        assert (await b.link.counters()).refused == 1
        assert b.upstream.accepted.empty()

        await b.link.heal()
        (_, writer), (up_reader, _) = await b.connection()
        writer.write(b"again")
        assert await read(up_reader, 5) == b"again"


async def test_a_cut_catches_connections_in_the_very_moment_of_their_arrival() -> None:
    async with bench() as b:
        for steps in range(8):
            coming = asyncio.ensure_future(b.client())
            for _ in range(steps):
                await asyncio.sleep(0)
            await b.link.cut()
            try:
                reader, _ = await coming
            except ConnectionResetError:
                pass
            else:
                assert await is_reset(reader)
            assert (await b.link.counters()).open == 0
            await b.link.heal()


async def test_cut_after_refuse_listens_again() -> None:
    async with bench() as b:
        await b.link.refuse()
        await b.link.cut()
        assert await newcomer_is_reset(b)


async def test_half_close_is_passed_on_and_the_answer_still_comes() -> None:
    async with bench() as b:
        (reader, writer), (up_reader, up_writer) = await b.connection()
        writer.write(b"all I have")
        writer.write_eof()
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"all I have"
        up_writer.write(b"thanks")
        up_writer.write_eof()
        assert await asyncio.wait_for(reader.read(), GRACE) == b"thanks"
        await until_open(b.link, 0)


async def test_a_slow_client_gets_everything_after_both_ends_are_done() -> None:
    async with bench() as b:
        (reader, writer), (_, up_writer) = await b.connection()
        writer.write_eof()
        total = 16 << 20
        up_writer.write(b"x" * total)
        up_writer.write_eof()
        await asyncio.sleep(PROBE)  # the upstream is long done when the client begins to read
        assert len(await asyncio.wait_for(reader.read(), 4 * GRACE)) == total


async def test_a_half_close_waits_its_turn_behind_delayed_bytes() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        await b.link.delay(0.2)
        started = time.monotonic()
        writer.write(b"slow")
        writer.write_eof()
        assert await asyncio.wait_for(up_reader.read(), GRACE) == b"slow"
        assert time.monotonic() - started >= 0.2


async def test_a_reset_is_passed_on() -> None:
    async with bench() as b:
        (reader, _), (_, up_writer) = await b.connection()
        abort(up_writer)
        assert await is_reset(reader)


async def test_an_absent_upstream_resets_the_client_and_counts_it() -> None:
    async with bench() as b:
        b.link.upstream_port = 1  # nothing listens there
        assert await newcomer_is_reset(b)
        assert (await b.link.counters()).refused == 1


async def test_a_slow_reader_slows_the_sender_down() -> None:
    async with bench() as b:
        (_, writer), _ = await b.connection()
        sent = 0
        block = b"x" * (1 << 20)
        with contextlib.suppress(TimeoutError):
            for _ in range(64):
                writer.write(block)
                async with asyncio.timeout(PROBE):
                    await writer.drain()
                sent += len(block)
        assert sent < 64 << 20  # nobody reads, so the sender must have been stopped


async def test_a_stall_holds_only_so_much() -> None:
    async with bench() as b:
        (_, writer), (up_reader, _) = await b.connection()
        await b.link.stall()
        total = HELD_LIMIT + (8 << 20)
        writer.write(b"x" * total)
        await asyncio.sleep(PROBE)
        [pair] = b.link.pairs
        assert pair.up._held <= HELD_LIMIT + (1 << 20)
        await b.link.heal()
        assert len(await read(up_reader, total)) == total


async def test_a_wrong_direction_is_refused_with_the_right_ones() -> None:
    async with bench() as b:
        with pytest.raises(ValueError, match="direction 'sideways': write one of up, down, both"):
            await b.link.stall(direction="sideways")
        with pytest.raises(ValueError, match="neither may be negative"):
            await b.link.delay(-1)
