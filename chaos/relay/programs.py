"""What each toxic does to a TCP stream; `WORKS` is the whole list."""

import random
import time
from collections.abc import Iterator, Mapping

from holdfast.chaos.linkflow import Mark
from holdfast.chaos.relay.stage import TAKE, Chunk, Program, Sleep, Stage, Take, Work
from holdfast.chaos.relay.toxic import Toxic

MILLISECOND, MICROSECOND = 1e-3, 1e-6
PIECE = 0.1  # a limited rate comes in pieces of so many seconds
LATENCY_CAPACITY = 1024


def passing(stage: Stage) -> Program:
    while True:
        stage.send((yield TAKE))


def latency(stage: Stage) -> Program:
    """Each chunk is held from its own arrival, so chunks in a row do not add up, and none overtakes."""
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
    """Bytes leave when the last of them would have come through; what a timer errs is made up for by the next."""
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
    while True:
        item = yield TAKE
        if isinstance(item, Mark) and (yield Sleep(max(0.0, stage.toxic["delay"] * MILLISECOND))):
            stage.give_back(item)  # an update begins the wait anew, a removal hands it on
        else:
            stage.send(item)


def timeout(stage: Stage) -> Program:
    """Silence in this direction closes the connection; what is dropped is no silence."""
    limit = stage.toxic["timeout"] * MILLISECOND
    while (chunk := (yield Take(limit if limit > 0 else None))) is not None:
        stage.connection.dropped(chunk)
    yield from _closed(stage)


def reset_peer(stage: Stage) -> Program:
    """The wait is the connection's, not the stage's: bytes are missing now, so no removal can save it."""
    item = yield TAKE
    stage.connection.close_after(max(0.0, stage.toxic["timeout"] * MILLISECOND))
    while True:
        if isinstance(item, Chunk):
            stage.connection.dropped(item)
        item = yield TAKE


def limit_data(stage: Stage) -> Program:
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
    """Halved again and again, each middle moved a little, until every piece is small enough."""
    if length <= average + variation:
        yield length
        return
    middle = length // 2 + (rng.randrange(-variation, variation) if variation else 0)
    if not 0 < middle < length:
        middle = length // 2
    yield from sizes(middle, average, variation, rng)
    yield from sizes(length - middle, average, variation, rng)


def blackhole(stage: Stage) -> Program:  # noqa: ARG001 - a program like the others
    """Nothing is taken, so nothing is read either; both ends keep their sockets and believe in them."""
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
    "refuse": PASSING,  # its work is at the listener
}
