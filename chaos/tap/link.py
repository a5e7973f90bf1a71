"""A link that notes what passes, and may rewrite what comes down.

Bytes are noted when they are handed on, not when they arrive: a command that a stall holds back is noted when Redis
gets it, and a reply when the node gets it. So the notes tell what the two sides could know, and in which order. Faults
and counters are those of any link.
"""

import itertools
import json
import random
import socket
from asyncio import get_running_loop
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from holdfast.chaos.links.flow import Direction, Flow, Mark, Pair
from holdfast.chaos.links.link import Link
from holdfast.chaos.tap.recorder import Note, Recorder
from holdfast.chaos.tap.rewrite import Rewriter


class Notes:
    """The file that all tapped links of a process write to, one JSON object a line, in the order of the events.

    Lines are written once a turn of the loop and flushed then, so that a busy connection costs one system call a turn
    and the runner, which reads the file as it grows, is behind by no more than that.
    """

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")
        self._unwritten: list[str] = []

    def write(self, note: Note) -> None:
        if not self._unwritten:
            get_running_loop().call_soon(self._flush)
        self._unwritten.append(json.dumps(note, ensure_ascii=False, default=str))

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._unwritten:
            self._file.write("\n".join(self._unwritten) + "\n")
            self._file.flush()
            self._unwritten.clear()


class TappedLink(Link):
    """`name` is what its notes carry; `addresses` are rewritten in what comes down, as long as there are any."""

    def __init__(self, name: str, notes: Notes, upstream_host: str, upstream_port: int, listen_port: int = 0) -> None:
        super().__init__(upstream_host, upstream_port, listen_port)
        self.name = name
        self.notes = notes
        self.addresses: dict[str, str] = {}
        self.connections = itertools.count(1)

    def pair(self, accepted: socket.socket) -> Pair:
        return TappedPair(self, accepted)

    async def rewrite(self, addresses: dict[str, str]) -> None:
        """Replace these addresses (`host:port` by `host:port`) in what comes down, on open connections too."""
        self.addresses.clear()
        self.addresses.update(addresses)


class TappedPair(Pair):
    def __init__(self, link: TappedLink, accepted: socket.socket) -> None:
        self._recorder = Recorder(link.name, next(link.connections), link.notes.write)
        self._rewriter = Rewriter(link.addresses)
        self._tapped = link
        super().__init__(link, accepted)

    def _flow(self, direction: Direction) -> Flow:
        if direction is self._tapped.up:
            return TappedFlow(self, direction, self._tapped.rng, self._pass_up, bytes)
        return TappedFlow(self, direction, self._tapped.rng, self._pass_down, self._rewriter.rest)

    def _pass_up(self, data: bytes) -> bytes:
        self._recorder.up(data)
        return data

    def _pass_down(self, data: bytes) -> bytes:
        passed = self._rewriter(data)
        if passed:
            self._recorder.down(passed)
        return passed

    def _leave(self) -> None:
        self._recorder.closed()
        super()._leave()


class TappedFlow(Flow):
    """Hands on what `take` makes of the bytes; at the end of the stream also what it has kept (`rest`)."""

    def __init__(
        self,
        pair: Pair,
        direction: Direction,
        rng: random.Random,
        take: Callable[[bytes], bytes],
        rest: Callable[[], bytes],
    ) -> None:
        super().__init__(pair, direction, rng)
        self._take = take
        self._rest = rest

    def _deliver(self, item: bytes | Mark) -> None:
        if isinstance(item, bytes):
            item = self._take(item)
        elif item is not Mark.RESET and (kept := self._rest()):
            super()._deliver(kept)
        if item:
            super()._deliver(item)
