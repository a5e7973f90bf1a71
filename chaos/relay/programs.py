"""What each toxic does to a TCP stream; `WORKS` lists them all.

Each program runs inside a stage (see `stage`) and follows three rules. What it takes it sends, gives back, or drops
through `stage.connection.dropped`, which counts it. It waits by `Sleep` or `Take(within)` only; a `Sleep` that was
interrupted ends with what is in hand going out at once, because the toxic was changed or removed. It may read the
toxic's attributes once, at its start, since an update starts it again.

Times and rates are those of Toxiproxy 2.12; `tests/chaos/differential` compares them with a real one.
"""

import random
import time
from collections.abc import Iterator, Mapping

from holdfast.chaos.links.flow import Mark
from holdfast.chaos.relay.stage import TAKE, Chunk, Program, Sleep, Stage, Take, Work
from holdfast.chaos.relay.toxic import Toxic

MILLISECOND, MICROSECOND = 1e-3, 1e-6
PIECE = 0.1  # seconds; a limited rate is sent in pieces that take this long
LATENCY_CAPACITY = 1024


def passing(stage: Stage) -> Program:
    while True:
        stage.send((yield TAKE))


def latency(stage: Stage) -> Program:
    """Hold each chunk from its own arrival, so that delays of chunks in a row do not add up and none overtakes."""
    while True:
        chunk = yield TAKE
        due = chunk.at + drawn_latency(stage.toxic, stage.rng)
        wait = due - time.monotonic()
        released = wait > 0 and (yield Sleep(wait))
        stage.send(Chunk(chunk.data, time.monotonic() if released else due))


def drawn_latency(toxic: Toxic, rng: random.Random) -> float:
    jitter = toxic["jitter"]
    milliseconds = toxic["latency"] + (rng.randrange(-jitter, jitter) if jitter > 0 else 0)
    return max(0.0, float(milliseconds * MILLISECOND))


def bandwidth(stage: Stage) -> Program:
    """Send each piece when its last byte would have come through; lateness of a timer shortens the next wait."""
    debt = 0.0
    while True:
        chunk = yield TAKE
        rest, rate = chunk.data, stage.toxic["rate"] * 1000
        while rest and rate > 0:
            piece = min(len(rest), int(rate * PIECE))
            debt += piece / rate
            began = time.monotonic()
            if debt > 0 and (yield Sleep(debt)):
                break
            debt -= time.monotonic() - began
            stage.send(Chunk(rest[:piece], chunk.at))
            rest = rest[piece:]
        if rest:
            stage.send(Chunk(rest, chunk.at))


def slow_close(stage: Stage) -> Program:
    """Hold the end of the stream, not its bytes."""
    while True:
        item = yield TAKE
        if isinstance(item, Mark) and (yield Sleep(max(0.0, stage.toxic["delay"] * MILLISECOND))):
            stage.give_back(item)  # an update begins the wait again, a removal sends it on
        else:
            stage.send(item)


def timeout(stage: Stage) -> Program:
    """Drop everything, and close the connection after a time without any byte, dropped ones included."""
    limit = stage.toxic["timeout"] * MILLISECOND
    while (chunk := (yield Take(limit if limit > 0 else None))) is not None:
        stage.connection.dropped(chunk)
    yield from _closed(stage)


def reset_peer(stage: Stage) -> Program:
    """Drop everything, and close after a wait of the connection: bytes are missing, so no removal can stop it."""
    item = yield TAKE
    stage.connection.close_after(max(0.0, stage.toxic["timeout"] * MILLISECOND))
    while True:
        if isinstance(item, Chunk):
            stage.connection.dropped(item)
        item = yield TAKE


def limit_data(stage: Stage) -> Program:
    """Pass `bytes` bytes over the life of the connection, also over updates, then close it."""
    limit = max(0, stage.toxic["bytes"])
    while True:
        chunk = yield TAKE
        data = chunk.data[: max(0, limit - stage.passed)]
        stage.passed += len(data)
        if data:
            stage.send(Chunk(data, chunk.at))
        if stage.passed >= limit:
            yield from _closed(stage)


def slicer(stage: Stage) -> Program:
    """Cut chunks into pieces, with a pause after each."""
    toxic = stage.toxic
    while True:
        chunk = yield TAKE
        rest = chunk.data
        for size in sizes(len(rest), toxic["average_size"], toxic["size_variation"], stage.rng):
            stage.send(Chunk(rest[:size], chunk.at))
            rest = rest[size:]
            if toxic["delay"] > 0 and (yield Sleep(toxic["delay"] * MICROSECOND)):
                break
        if rest:
            stage.send(Chunk(rest, chunk.at))


def sizes(length: int, average: int, variation: int, rng: random.Random) -> Iterator[int]:
    """Yield the sizes of the pieces: halve, each middle moved a little, until every piece is small enough."""
    if length <= average + variation:
        yield length
        return
    middle = length // 2 + (rng.randrange(-variation, variation) if variation else 0)
    if not 0 < middle < length:
        middle = length // 2
    yield from sizes(middle, average, variation, rng)
    yield from sizes(length - middle, average, variation, rng)


def blackhole(stage: Stage) -> Program:  # noqa: ARG001 - programs have one signature
    """Take nothing, so that nothing is read either; both ends keep their connections open."""
    yield Sleep(None)


def _closed(stage: Stage) -> Program:
    stage.send(Mark.CLOSE)
    while True:
        stage.connection.dropped((yield TAKE))


PASSING = Work(passing)
WORKS: Mapping[str, Work] = {
    "latency": Work(latency, capacity=LATENCY_CAPACITY),
    "bandwidth": Work(bandwidth),
    "slow_close": Work(slow_close, sees_marks=True),
    "timeout": Work(timeout),
    "reset_peer": Work(reset_peer, sees_marks=True),
    "limit_data": Work(limit_data),
    "slicer": Work(slicer),
    "noop": PASSING,
    "blackhole": Work(blackhole, capacity=0),
    "refuse": PASSING,  # works at the listener
}
