"""A link: one TCP listener in front of one upstream, on which a network's faults can be put, direction by direction.

"up" is from the client to the upstream, "down" the way back. Bytes are counted when they are handed on, so what a
stall holds is not counted yet. The upstream is connected at once even during a stall, as if the client had been
there before.
"""

import asyncio
import random
import socket

from holdfast.chaos.linkflow import Pair, Way, dial, reset
from holdfast.deployment import LinkCounters

BACKLOG = 1024
ACCEPT_AGAIN = 0.1
RESET_DEADLINE = 5.0

DIRECTIONS = {"up": ("up",), "down": ("down",), "both": ("up", "down")}


class Link:
    """Each verb has taken effect when it returns; `heal` takes back all the others."""

    def __init__(self, upstream_host: str, upstream_port: int, listen_port: int = 0, *, seed: int = 0) -> None:
        self.upstream_host = upstream_host
        self.upstream_port = upstream_port
        self.port = listen_port
        self.up, self.down = Way(), Way()
        self.rng = random.Random(seed)
        self.pairs: set[Pair] = set()
        self.opened = 0
        self.refused = 0
        self._listener: socket.socket | None = None
        self._cutting = False

    async def delay(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> None:
        """Hold every chunk for `seconds` ± `jitter`; what is on its way keeps the delay that it was given."""
        if seconds < 0 or jitter < 0:
            raise ValueError(f"a delay of {seconds} ± {jitter} s; neither may be negative")
        for way in self._ways(direction):
            way.delay, way.jitter = seconds, jitter

    async def stall(self, direction: str = "both") -> None:
        """Hold everything until `heal`; sockets stay open, and new ones are accepted."""
        for way in self._ways(direction):
            way.stalled = True

    async def refuse(self) -> None:
        """Listen no more, so that connects are refused, and reset what is open."""
        self.stop_listening()
        await self._reset_all()

    async def cut(self) -> None:
        """Reset what is open, and from now on accept and reset every newcomer."""
        self._cutting = True
        self.listen()
        await self._reset_all()

    async def lead_to(self, host: str, port: int) -> None:
        """Connections go there from now on; those that stand stay where they are."""
        self.upstream_host, self.upstream_port = host, port

    async def heal(self) -> None:
        """Take back every fault: held bytes go out at once, in order, and the listener is there again."""
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
        """`refused` counts those that were accepted and reset: during a cut, or for want of an upstream."""
        joined = sum(pair.joined for pair in self.pairs)
        up, down = self.up, self.down
        return LinkCounters(up.bytes, down.bytes, up.chunks, down.chunks, self.opened, joined, self.refused)

    def listen(self) -> None:
        """Listen on the link's port, again or for the first time; no effect while it listens already."""
        if self._listener is not None:
            return
        # Not asyncio's own server: only a socket of ours is closed for certain when close() returns, on uvloop too.
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
        """Is the newcomer reset?"""
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
        except OSError:  # out of descriptors: the listener stays readable, so look away for a while
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

    def _ways(self, direction: str) -> list[Way]:
        if direction not in DIRECTIONS:
            raise ValueError(f"direction {direction!r}; it is one of {', '.join(DIRECTIONS)}")
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
