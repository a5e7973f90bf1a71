"""What a link is made of: a pair per connection, with two sides (its sockets) and a flow in each direction.

    client ── Side ──► Flow up ──► Side ── upstream
                  ◄── Flow down ◄──

A flow that nothing holds back hands bytes on at once; else they wait in its queue, in order, together with the mark
(end of stream, reset) that came behind them. The order is never changed: an item is due no earlier than the one before
it.

A pair goes through these states, forward only:

1. dialling: the client is accepted, and nothing is read from it until the upstream is connected.
2. `joined`: both sides exist, flows move. Or `doomed`: the upstream cannot be reached, or a reset came meanwhile; then
   both sockets are reset.
3. `finished`, unless it is reset: an orderly close has begun; each side is closed once its bytes are written.
4. `gone`: both sockets are closed and the pair has left its link. Verbs that reset wait for this event.

A reset that comes while sockets are being handed to the loop only dooms the pair; the join is left to end first,
because uvloop loses the handle of a connection whose creation is cancelled.

Back-pressure: a flow stops reading its source while the sink cannot be written, or while it holds more than
`HELD_LIMIT`.
"""

import asyncio
import contextlib
import enum
import random
import socket
import struct
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from holdfast.chaos.links.link import Link

# Beyond this a flow stops reading, so that the sender sees a full window, as on a real network.
HELD_LIMIT = 4 << 20
ABORTIVE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close sends a reset


class Mark(enum.Enum):
    """What is queued in a flow besides bytes."""

    END = "end of stream"
    RESET = "reset"
    CLOSE = "close of the whole connection"


@dataclass
class Direction:
    """One direction of a link, shared by the flows of all its connections: its faults, and what has passed."""

    delay: float = 0.0
    jitter: float = 0.0
    stalled: bool = False
    bytes: int = 0
    chunks: int = 0

    @property
    def clear(self) -> bool:
        return not (self.stalled or self.delay or self.jitter)

    def heal(self) -> None:
        self.delay = self.jitter = 0.0
        self.stalled = False


class Side(asyncio.Protocol):
    """One socket of a connection: it feeds `outward` with what it reads, and writes what `inward` delivers."""

    outward: "Flow"
    inward: "Flow"

    def __init__(self, pair: "Pair") -> None:
        self.pair = pair
        self.transport: asyncio.Transport | None = None
        self.lost = False

    @property
    def absent(self) -> bool:
        return self.lost or self.transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's class does not inherit from it

    def data_received(self, data: bytes) -> None:
        self.outward.put(data)

    def eof_received(self) -> bool:
        self.outward.put(Mark.END)
        return True  # only this direction has ended

    def connection_lost(self, _: Exception | None) -> None:
        self.lost = True
        self.pair.side_gone(self)

    def pause_writing(self) -> None:
        self.inward.blocked(now=True)

    def resume_writing(self) -> None:
        self.inward.blocked(now=False)

    def end(self) -> None:
        if self.transport is not None and not self.lost:
            with contextlib.suppress(OSError):  # the other end has just reset it
                self.transport.write_eof()

    def close(self) -> None:
        """Close once everything is written."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close now; unwritten bytes are lost."""
        if self.transport is not None and not self.lost:
            self.transport.abort()

    def reset(self) -> None:
        self.linger()
        self.abort()

    def linger(self) -> None:
        """From now on every close of this socket is a reset."""
        if self.transport is not None and not self.lost:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTIVE)


class Flow:
    """One direction of one connection. Keeps the order of what it is given, however the delay changes meanwhile."""

    def __init__(self, pair: "Pair", direction: Direction, rng: random.Random) -> None:
        self.ended = False
        self._pair = pair
        self._direction = direction
        self._rng = rng
        self._queue: deque[tuple[float, bytes | Mark]] = deque()
        self._held = 0
        self._last_due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._blocked = False
        self._paused = False

    def join(self, source: Side, sink: Side) -> None:
        self._source, self._sink = source, sink
        source.outward = sink.inward = self

    def put(self, item: bytes | Mark) -> None:
        if not self._queue and self._direction.clear and self._pair.joined:
            self._deliver(item)
            return
        # Never due before what is in front of it: a shorter delay must not let bytes overtake.
        self._last_due = max(self._last_due, time.monotonic() + self._drawn_delay())
        self._queue.append((self._last_due, item))
        self._hold(len(item) if isinstance(item, bytes) else 0)
        self.move()

    def move(self) -> None:
        """Hand on what is due, and set a timer for the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._direction.stalled or not self._pair.joined:
            return
        while self._queue and self._queue[0][0] <= time.monotonic():
            self._deliver_first()
        if self._queue:
            wait = self._queue[0][0] - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(wait, 0), self.move)

    def flush(self) -> None:
        """Hand on everything now, due or not, because the faults are healed."""
        while self._queue and self._pair.joined:
            self._deliver_first()
        self._last_due = 0.0
        self.move()

    def drop(self) -> None:
        self._queue.clear()
        self.move()

    def blocked(self, *, now: bool) -> None:
        self._blocked = now
        self._regulate()

    def _drawn_delay(self) -> float:
        jitter = self._rng.uniform(-self._direction.jitter, self._direction.jitter) if self._direction.jitter else 0.0
        return max(0.0, self._direction.delay + jitter)

    def _deliver_first(self) -> None:
        _, item = self._queue.popleft()
        self._hold(-len(item) if isinstance(item, bytes) else 0)
        self._deliver(item)

    def _deliver(self, item: bytes | Mark) -> None:
        if isinstance(item, bytes):
            if self._sink.transport is not None and not self._sink.lost and not self.ended:
                self._sink.transport.write(item)
                self._direction.bytes += len(item)
                self._direction.chunks += 1
        elif item is Mark.END:
            self.ended = True
            self._pair.ended(self._sink)
        elif item is Mark.CLOSE:
            self.ended = True
            self._pair.close()
        else:
            self._pair.reset()

    def _hold(self, size: int) -> None:
        self._held += size
        self._regulate()

    def _full(self) -> bool:
        return self._blocked or self._held > HELD_LIMIT

    def _regulate(self) -> None:
        pause = self._full()
        if pause == self._paused or self._source.transport is None or self._source.lost:
            return
        self._paused = pause
        if pause:
            self._source.transport.pause_reading()
        else:
            self._source.transport.resume_reading()


class Pair:
    """One connection: the client's side, the upstream's side, and the two flows between them.

    `ended`, `side_gone` and `_give_up` decide what the end of one side means for the other: half-close and reset are
    passed on as they are, and without an upstream the client is reset. The relay overrides these three.
    """

    def __init__(self, link: "Link", accepted: socket.socket) -> None:
        self.joined = False
        self.doomed = False
        self.finished = False
        self.gone = asyncio.Event()
        self._link = link
        self._accepted = accepted
        self._dialling = True
        self._client, self._upstream = Side(self), Side(self)
        self.up, self.down = self._flow(link.up), self._flow(link.down)
        self.up.join(self._client, self._upstream)
        self.down.join(self._upstream, self._client)
        self._joining = asyncio.get_running_loop().create_task(self._join())
        # A callback, not an except clause in the task: a task that is cancelled before its first step runs none of it.
        self._joining.add_done_callback(self._joined)

    def _flow(self, direction: Direction) -> Flow:
        return Flow(self, direction, self._link.rng)

    async def _join(self) -> None:
        # Not create_connection: uvloop loses the handle of one that is cancelled, and then its loop never closes.
        dialled = await self._link.dial()
        self._dialling = False
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: self._upstream, dialled)
        await loop.connect_accepted_socket(lambda: self._client, self._accepted)

    def _joined(self, joining: asyncio.Task[None]) -> None:
        if joining.cancelled() or self.doomed:
            self._give_up()
            return
        error = joining.exception()
        if error is None:
            self._begin()
            return
        self._link.refused += 1
        self._give_up()
        if not isinstance(error, OSError):
            raise error  # a bug; the loop reports it

    def _begin(self) -> None:
        self._link.opened += 1
        self.joined = True
        self.up.move()
        self.down.move()

    def _give_up(self) -> None:
        self.doomed = True
        self._upstream.reset()
        self._client.reset()
        if self._client.transport is None:
            reset(self._accepted)
        self.side_lost()

    def ended(self, sink: Side) -> None:
        """Take note that a flow has ended, with everything of it written to `sink`."""
        sink.end()
        if self.up.ended and self.down.ended:
            self.close()

    def side_gone(self, side: Side) -> None:
        if not self.finished:  # else we closed it ourselves, and the other side may still have bytes to write
            side.outward.put(Mark.RESET)
        self.side_lost()

    def close(self) -> None:
        self.finished = True
        self._client.close()
        self._upstream.close()

    def side_lost(self) -> None:
        over = self.joined or self.doomed  # until then the other side may not exist yet
        if over and self._client.absent and self._upstream.absent:
            self._leave()

    def _leave(self) -> None:
        self.up.drop()
        self.down.drop()
        self._link.pairs.discard(self)
        self.gone.set()

    def reset(self) -> None:
        if self.joined:
            self._client.reset()
            self._upstream.reset()
        else:
            self.doomed = True
            if self._dialling:
                self._joining.cancel()


async def dial(host: str, port: int | str) -> socket.socket:
    """Connect to the first of the host's addresses that accepts; raise the last one's error when none does."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for family, _, _, _, address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return await _connect(family, address)
    return await _connect(addresses[-1][0], addresses[-1][4])


async def _connect(family: int, address: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def reset(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the loop may have closed it already
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTIVE)
    sock.close()
