"""A link: one TCP listener in front of one upstream, on which a network's faults can be put, direction by direction.

"up" is from the client to the upstream, "down" from the upstream to the client. Without a fault a link is invisible but
for its port: bytes, half-closes and resets are passed on as they come.

What must hold: when a verb returns, its fault is in force on every connection, open or new. So delays and stalls are
fields of a `Direction` that all flows of the link look at, and the verbs that reset connections wait until each is
gone. Held bytes are never lost or reordered by a change of the delay; only a reset drops them.

A link owns its listener and its pairs (one pair per connection). A pair is in `pairs` from its accept until both its
sockets are closed. Newcomers are accepted and connected upstream even during a stall, as if the client had connected
before it; only `refuse` closes the listener, and `heal` opens it again on the same port.

Bytes are counted when they are handed on, so what a stall holds is not counted yet. `TcpTransport` of the relay extends
this class: it overrides `bind`, `dial`, `pair` and `turns_away`.
"""

import asyncio
import random
import socket

from holdfast.chaos.links.flow import Direction, Pair, dial, reset
from holdfast.target.deployment import LinkCounters

BACKLOG = 1024
ACCEPT_AGAIN = 0.1
RESET_DEADLINE = 5.0

DIRECTIONS = {"up": ("up",), "down": ("down",), "both": ("up", "down")}


class Link:
    """Each verb is in force when it returns; `heal` takes back all others, but not `lead_to`."""

    def __init__(self, upstream_host: str, upstream_port: int, listen_port: int = 0) -> None:
        self.upstream_host = upstream_host
        self.upstream_port = upstream_port
        self.port = listen_port
        self.up, self.down = Direction(), Direction()
        self.rng = random.Random(0)  # draws jitter, the same in every run
        self.pairs: set[Pair] = set()
        self.opened = 0
        self.refused = 0
        self._listener: socket.socket | None = None
        self._cutting = False

    async def delay(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> None:
        """Hold every chunk for `seconds` ± `jitter`; what is held already keeps the delay that it was given."""
        if seconds < 0 or jitter < 0:
            raise ValueError(f"a delay of {seconds} ± {jitter} s: neither may be negative")
        for one in self._directions(direction):
            one.delay, one.jitter = seconds, jitter

    async def stall(self, direction: str = "both") -> None:
        """Hold everything until `heal`; connections stay open, and new ones are accepted."""
        for one in self._directions(direction):
            one.stalled = True

    async def refuse(self) -> None:
        """Stop listening, so that the kernel refuses connects, and reset what is open."""
        self.stop_listening()
        await self._reset_all()

    async def cut(self) -> None:
        """Reset what is open, and accept and reset every new connection until `heal`."""
        self._cutting = True
        self.listen()
        await self._reset_all()

    async def lead_to(self, host: str, port: int) -> None:
        """Connect new connections to this upstream; open ones keep theirs."""
        self.upstream_host, self.upstream_port = host, port

    async def heal(self) -> None:
        """Take back every fault: hand held bytes on at once, in order, and listen again."""
        self._cutting = False
        self.listen()
        self.up.heal()
        self.down.heal()
        for pair in list(self.pairs):
            pair.up.flush()
            pair.down.flush()

    async def close(self) -> None:
        await self.refuse()

    async def counters(self) -> LinkCounters:
        """Count; `refused` are connections that were accepted and reset, by a cut or because no upstream answered."""
        joined = sum(pair.joined for pair in self.pairs)
        up, down = self.up, self.down
        return LinkCounters(up.bytes, down.bytes, up.chunks, down.chunks, self.opened, joined, self.refused)

    def listen(self) -> None:
        """Listen on the link's port, the first time or again; without effect while it listens already."""
        if self._listener is not None:
            return
        # Not asyncio's server: only a socket of our own is certainly closed when close() returns, on uvloop too.
        self._listener = self.bind()
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._watch_listener()

    def bind(self) -> socket.socket:
        return socket.create_server(("127.0.0.1", self.port), backlog=BACKLOG)

    async def dial(self) -> socket.socket:
        return await dial(self.upstream_host, self.upstream_port)

    def pair(self, accepted: socket.socket) -> Pair:
        return Pair(self, accepted)

    def turns_away(self) -> bool:
        """Return whether the connection just accepted is to be reset."""
        return self._cutting

    def _watch_listener(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept, self._listener)

    def stop_listening(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:  # out of descriptors; the listener stays readable, so stop watching it for a while
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener.fileno())
            loop.call_later(ACCEPT_AGAIN, self._watch_listener)
            return
        if self.turns_away():
            self.refused += 1
            reset(accepted)
        else:
            accepted.setblocking(False)
            self.pairs.add(self.pair(accepted))

    def _directions(self, direction: str) -> list[Direction]:
        if direction not in DIRECTIONS:
            raise ValueError(f"direction {direction!r}: write one of {', '.join(DIRECTIONS)}")
        return [getattr(self, name) for name in DIRECTIONS[direction]]

    async def _reset_all(self) -> None:
        pairs = list(self.pairs)
        for pair in pairs:
            pair.reset()
        await self._all_gone(pairs)

    async def _all_gone(self, pairs: list[Pair]) -> None:
        async with asyncio.timeout(RESET_DEADLINE):
            for pair in pairs:
                await pair.gone.wait()
