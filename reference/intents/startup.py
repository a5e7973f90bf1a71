"""What a worker does before its first event (5.3 B), and what it repeats for as long as it lives."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.reference.intents.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.intents.worker import Worker


class Startup:
    def __init__(self, node: "Worker") -> None:
        self.node = node
        self.state = "starting"
        self.started_ms = int(time.time() * 1000)
        self.flushed = 0

    def steps(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Flush before the first event: a queued intent must neither meet a zombie lease nor lose its own."""
        own = (self.flush, self.end_orphans, self.claim) if self.node.settings.startup_flush else ()
        return (self.starting, *own, self.ready)

    async def starting(self) -> None:
        await self.announce("starting")

    async def flush(self) -> None:
        """OnStartup -> Store.DeleteAllLeases (5.3 B)."""
        self.flushed = await self.node.store.flush()
        self.node.events.emit("leases.flushed", count=self.flushed)

    async def end_orphans(self) -> None:
        await self.expire(all_=True)

    async def claim(self) -> None:
        """Takes over the events of the killed worker; those of sessions that are not NEW are dropped."""
        await self.node.bus.join(self.node.link.call)
        await self.node.bus.claim(0)

    async def ready(self) -> None:
        await self.announce("ready")
        self.node.events.emit("worker.ready", incarnation=self.node.incarnation)

    async def announce(self, state: str) -> None:
        """Says in Redis what this process does, for whoever waits for it; ends by itself after a kill."""
        self.state = state
        node, key = self.node, f"worker:{self.node.settings.node}"
        told = {
            "state": state,
            "startedAtMs": self.started_ms,
            "incarnation": node.incarnation,
            "flushed": self.flushed,
        }
        words = [str(word) for pair in told.items() for word in pair]
        written = node.link.call("HSET", key, *words)
        await node.link.call("PEXPIRE", key, int(node.settings.worker_life * 1000))
        await written

    async def beats(self) -> None:
        while True:
            await self.node.clock.sleep(self.node.settings.worker_beat)
            with suppress(*AWAY):
                await self.announce(self.state)

    async def sweeps(self) -> None:
        while True:
            await self.node.clock.sleep(self.node.settings.renew_every)
            with suppress(*AWAY):
                await self.sweep()

    async def sweep(self) -> None:
        """Ends sessions whose life has run out, and takes over events that were left lying for a whole TTL."""
        await self.expire(all_=False)
        await self.node.bus.claim(self.node.settings.lease_ttl)
        await self.node.store.trim_bus()

    async def expire(self, *, all_: bool) -> None:
        ended = await self.node.store.expire(all_=all_)
        for each in ended:
            fields = {"sessionId": each["sessionId"], "from": each["from"]}
            self.node.events.emit("session.state", **fields, to="FAILED", reason="R_LEASE_EXPIRED")
        await self.node.pipelines.forget(*(each["sessionId"] for each in ended))
