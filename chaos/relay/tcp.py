"""The TCP transport of a proxy: a link with a chain of toxics in each direction of every connection.

It extends the link (`chaos/links`): listener, pairs, sides and flows are the same, and each flow has a chain of stages,
one per toxic of its direction, before its delivery:

    source ──► Stage ──► Stage ──► Tail ──► the flow's delivery ──► sink

Without toxics the chain is empty and a flow is as short as a link's. What must hold: every change of toxics is in force
on every open connection when the call returns. So stages are driven by callbacks, not tasks (see `stage`), and a change
is made to all flows in one turn of the loop.

Order of a removal: interrupt the stage before it, interrupt the stage, hand on what it holds, take it out, start the
one before again. Otherwise a chunk could pass the gap and overtake what was held. An addition restarts the stage before
the new one, and draws again whether that toxic hits the connection, as Toxiproxy does.

Ends: a strict proxy passes half-close and resets on, as a link does. An ordinary one treats ends as Toxiproxy does: the
end of one side, a reset too, is a clean close of the other.

`refuse` has no stage: a certain refusal closes the listener, so that the kernel refuses.
"""

import asyncio
import random
import socket
import time
from collections.abc import Iterator

from holdfast.chaos.links.flow import Direction, Flow, Mark, Pair, Side, dial
from holdfast.chaos.links.link import BACKLOG, Link
from holdfast.chaos.relay.address import Address, AddressError, bind, bound, refused, split
from holdfast.chaos.relay.draws import Generators
from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.stage import Chunk, Item, Outlet, Stage
from holdfast.chaos.relay.toxic import DOWNSTREAM, UPSTREAM, Toxic
from holdfast.chaos.relay.traffic import Traffic

CHUNK = 32 << 10
ANYWHERE = Address("127.0.0.1", 0)


class ToxicFlow(Flow):
    """A flow with stages before its delivery."""

    _direction: Traffic

    def __init__(self, pair: "ToxicPair", direction: Traffic, stream: str) -> None:
        super().__init__(pair, direction, pair.transport.rng)
        self._toxic_pair = pair
        self._stream = stream
        self._stages: list[Stage] = []
        self._tail = Tail(self)

    @property
    def room(self) -> bool:
        return not self._blocked

    def put(self, item: bytes | Mark) -> None:
        if isinstance(item, bytes):
            self._direction.received += len(item)
        if self._stages:
            self._feed(item)
        else:
            super().put(item)

    def put_out(self, item: bytes | Mark) -> None:
        # A toxic that closes ends its own direction; the other may still have something to deliver.
        as_end = item is Mark.CLOSE and not self._toxic_pair.transport.strict
        super().put(Mark.END if as_end else item)

    def begin(self, toxics: list[Toxic]) -> None:
        """Start the stages of a connection that is about to be joined; early bytes go through them too."""
        early = [item for _, item in self._queue] if toxics else []
        for toxic in toxics:
            self._append(toxic)
        if early:
            self._queue.clear()
            self._held = 0
        for item in early:
            self._feed(item)

    def add(self, toxic: Toxic) -> None:
        """Put a stage at the end of the chain."""
        if self._stages:
            self._restart(self._stages[-1])
        self._append(toxic)

    def update(self, toxic: Toxic) -> None:
        """Start the toxic's stage again with its new attributes, which draws anew whether it hits."""
        for stage in self._stages:
            if stage.toxic is toxic:
                self._restart(stage)
        self._regulate()

    def remove(self, toxic: Toxic) -> None:
        """Take the stage of a toxic out of the chain; what it holds goes on, before anything that comes later."""
        index = next((i for i, stage in enumerate(self._stages) if stage.toxic is toxic), None)
        if index is None:
            return
        stage = self._stages[index]
        before = self._stages[index - 1] if index else None
        if before is not None:
            before.interrupt()
        stage.interrupt()
        stage.flush()
        stage.dispose()
        del self._stages[index]
        self._join_stages()
        if before is not None:
            before.start(self._toxic_pair.transport.effects.spared())
        self._regulate()

    def hit_by(self, type_: str) -> bool:
        """Return whether a toxic of this type was drawn to hit this connection."""
        return any(stage.hit and stage.toxic.type == type_ for stage in self._stages)

    def drop(self) -> None:
        for stage in self._stages:
            stage.dispose()
        self._stages.clear()
        super().drop()

    def blocked(self, *, now: bool) -> None:
        """Take note whether the sink can be written; when it can again, the last stage goes on."""
        super().blocked(now=now)
        if self._stages and not now:
            self._stages[-1].advance()

    def dropped(self, chunk: Chunk) -> None:
        self._direction.drop(chunk.data)

    def close_after(self, seconds: float) -> None:
        """End the whole connection later, for a program that has dropped bytes of it."""
        self._toxic_pair.shut_after(seconds)

    def _append(self, toxic: Toxic) -> None:
        transport = self._toxic_pair.transport
        stage = Stage(toxic, transport.effects.tcp, self._toxic_pair.rngs[self._stream], self)
        self._stages.append(stage)
        self._join_stages()
        stage.start(transport.effects.spared())
        self._regulate()

    def _restart(self, stage: Stage) -> None:
        stage.interrupt()
        stage.start(self._toxic_pair.transport.effects.spared())

    def _join_stages(self) -> None:
        """Tell each stage who comes after it, and whom to wake when it has room again: the first wakes our reading."""
        behind: list[Outlet] = [*self._stages[1:], self._tail]
        for stage, outlet in zip(self._stages, behind, strict=False):
            stage.next = outlet
        refills = [self._regulate, *(stage.advance for stage in self._stages)]
        for stage, refill in zip(self._stages, refills, strict=False):
            stage.refill = refill

    def _feed(self, item: bytes | Mark) -> None:
        head = self._stages[0]
        if isinstance(item, bytes):
            now = time.monotonic()
            for at in range(0, len(item), CHUNK):
                head.put(Chunk(item[at : at + CHUNK], now))
        else:
            head.put(item)
        self._regulate()

    def _full(self) -> bool:
        return not self._stages[0].ready if self._stages else super()._full()


class Tail:
    """The outlet behind the last stage: the flow's own delivery."""

    def __init__(self, flow: ToxicFlow) -> None:
        self._flow = flow

    @property
    def ready(self) -> bool:
        return self._flow.room

    def put(self, item: Item) -> None:
        self._flow.put_out(item.data if isinstance(item, Chunk) else item)


class ToxicPair(Pair):
    up: ToxicFlow
    down: ToxicFlow

    def __init__(self, transport: "TcpTransport", accepted: socket.socket, number: int) -> None:
        self.transport = transport
        self.rngs = Generators(transport.seed, number)
        self._shutting: asyncio.TimerHandle | None = None
        super().__init__(transport, accepted)

    def flow(self, stream: str) -> ToxicFlow:
        return self.up if stream == UPSTREAM else self.down

    def ended(self, sink: Side) -> None:
        """Pass the end of a flow on: as a half-close if strict, else as the close of that side."""
        if self.transport.strict:
            super().ended(sink)
        else:
            sink.close()

    def side_gone(self, side: Side) -> None:
        """Pass the loss of a side on: as a reset if strict, else as an end of stream, behind what is held."""
        if self.transport.strict:
            super().side_gone(side)
            return
        side.outward.put(Mark.END)
        self.side_lost()

    def shut(self) -> None:
        """Close both sides now; what is held is dropped."""
        if self.joined:
            self.finished = True
            self._client.abort()
            self._upstream.abort()
        else:
            self.reset()

    def shut_after(self, seconds: float) -> None:
        """End the connection later, once; nothing takes that back, since bytes were dropped already."""
        if self._shutting is None:
            end = self.reset if self.transport.strict else self.shut
            self._shutting = asyncio.get_running_loop().call_later(seconds, end)

    def _flow(self, direction: Direction) -> ToxicFlow:
        if direction is self.transport.traffic[UPSTREAM]:
            return ToxicFlow(self, self.transport.traffic[UPSTREAM], UPSTREAM)
        return ToxicFlow(self, self.transport.traffic[DOWNSTREAM], DOWNSTREAM)

    def _begin(self) -> None:
        if self.transport.toxics:
            self._meet_toxics()
        super()._begin()

    def _meet_toxics(self) -> None:
        """Put the proxy's present toxics on a connection that begins."""
        for stream in (UPSTREAM, DOWNSTREAM):
            self.flow(stream).begin([toxic for toxic in self.transport.toxics if toxic.direction == stream])
        # Toxiproxy decides this when a connection opens: a reset_peer that is added later closes it cleanly.
        if self.up.hit_by("reset_peer") or self.down.hit_by("reset_peer"):
            self._client.linger()
            self._upstream.linger()

    def _leave(self) -> None:
        if self._shutting is not None:
            self._shutting.cancel()
        super()._leave()

    def _give_up(self) -> None:
        """End a connection that has no upstream: by a reset if strict, else by a clean close."""
        if self.transport.strict:
            super()._give_up()
            return
        self.doomed = True
        self._upstream.abort()
        self._client.abort()
        if self._client.transport is None:
            self._accepted.close()
        self.side_lost()


class TcpTransport(Link):
    """Every verb is in force on every open connection when it returns."""

    network = "tcp"
    pairs: set[ToxicPair]  # type: ignore[assignment]  # only `pair` makes them

    def __init__(self, upstream: str, toxics: list[Toxic], effects: Effects, seed: str) -> None:
        super().__init__("", 0)
        self.upstream = upstream
        self.toxics = toxics
        self.effects = effects
        self.seed = seed
        self.strict = False
        self.traffic = {UPSTREAM: Traffic(), DOWNSTREAM: Traffic()}
        self.up, self.down = self.traffic[UPSTREAM], self.traffic[DOWNSTREAM]
        self._address: Address | None = None  # None while the proxy is disabled
        self._accepted = 0
        self._rng = random.Random(f"{seed} newcomers")

    def open(self, address: Address) -> Address:
        self._address = address
        try:
            self.listen()
        except AddressError:
            self._address = None
            raise
        self._address = bound(self._listener) if self._listener else address
        self._heed_refusal()
        return self._address

    async def stop(self) -> None:
        """Stop listening and close every connection cleanly; return when all are gone."""
        self._address = None
        self.stop_listening()
        pairs = list(self.pairs)
        for pair in pairs:
            pair.shut()
        await self._all_gone(list(pairs))

    def add(self, toxic: Toxic) -> None:
        self._heed_refusal()
        for flow in self._flows(toxic):
            flow.add(toxic)

    def update(self, toxic: Toxic) -> None:
        self._heed_refusal()
        for flow in self._flows(toxic):
            flow.update(toxic)

    def remove(self, toxic: Toxic) -> None:
        """Remove a toxic; a `timeout` has dropped bytes, so all connections end with it, even those it spared."""
        for pair in list(self.pairs):
            if toxic.type == "timeout":
                pair.shut()
            else:
                pair.flow(toxic.direction).remove(toxic)
        self._heed_refusal()

    async def reset(self) -> int:
        """Reset what is open; return how many connections that were."""
        count = len(self.pairs)
        await self._reset_all()
        return count

    def rebind(self) -> int:
        return 0  # a TCP connection keeps its ports

    def tally(self) -> dict[str, dict[str, int]]:
        joined = sum(pair.joined for pair in self.pairs)
        connections = {"opened": self.opened, "open": joined, "refused": self.refused}
        return {"connections": connections} | {stream: traffic.shown() for stream, traffic in self.traffic.items()}

    def bind(self) -> socket.socket:
        address = self._address or ANYWHERE
        sock = bind(address, self.network)
        try:
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            raise refused(address, self.network, error) from error
        return sock

    async def dial(self) -> socket.socket:
        try:
            host, port = split(self.upstream)
            return await dial(host or "localhost", port)
        except (AddressError, UnicodeError) as error:
            raise ConnectionError(str(error)) from error

    def pair(self, accepted: socket.socket) -> Pair:
        self._accepted += 1
        return ToxicPair(self, accepted, self._accepted)

    def turns_away(self) -> bool:
        return any(self._rng.random() < toxic.toxicity for toxic in self._refusals())

    def _heed_refusal(self) -> None:
        """Listen, unless a toxic refuses with certainty: by chance a connection can only be reset once accepted."""
        if self._address is None:
            return
        if any(toxic.toxicity >= 1 for toxic in self._refusals()):
            self.stop_listening()
        else:
            self.listen()

    def _refusals(self) -> Iterator[Toxic]:
        return (toxic for toxic in self.toxics if toxic.type == "refuse")

    def _flows(self, toxic: Toxic) -> list[ToxicFlow]:
        return [pair.flow(toxic.direction) for pair in self.pairs if pair.joined]
