"""The worker process (3.2, 5.3 B). Start it with `python -m holdfast.reference.intents worker`.

It keeps only the sessions that it runs. What it holds in Redis outlives a kill by one lease TTL at the most; the worker
that starts next is taken for the only one (single-writer hack): it deletes all leases and ends all sessions that were
running. A standby is started with `XG2G_WORKER_STARTUP_FLUSH=false` and does neither.
"""

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

from holdfast.reference.intents.components import Components
from holdfast.reference.intents.metrics import listen
from holdfast.reference.intents.scripts import limits
from holdfast.reference.intents.settings import Settings, settings_from
from holdfast.reference.intents.store import AWAY
from holdfast.reference.shared.background import Background
from holdfast.reference.shared.metrics import without_created
from holdfast.reference.shared.program import Program

RETRY_SECONDS = 0.1


class Worker(Background):
    """Wires the components of a worker together. `incarnation` tells this process from an earlier one of its name."""

    def __init__(self, settings: Settings, components: Components) -> None:
        super().__init__()
        self.settings = components.settings(settings)
        self.incarnation = uuid.uuid4().hex
        self.clock = components.clock()
        self.events = components.events(self.settings.node, sys.stdout.buffer)
        self.scripts = components.scripts(limits(self.settings), components.lua)
        self.metrics = components.metrics(self.settings)
        self.store = components.store(self)
        self.link = components.link(self.settings.redis_url, self.store.prepare)
        self.leases = components.leases(self)
        self.bus = components.bus(self)
        self.pipelines = components.pipelines(self)
        self.runner = components.runner(self)
        self.orchestrator = components.orchestrator(self)
        self.startup = components.startup(self)

    async def run(self) -> None:
        self.stop_on_signals()
        self.link.start()
        self.bus.reader.start()
        metrics = web.ServerRunner(web.Server(self.metrics.serve, access_log=None))
        await metrics.setup()
        if self.settings.metrics_listen:
            await listen(self.settings.metrics_listen, metrics)
        work = self.spawn(self.work())
        await self.stopping.wait()
        await self.stop(work)
        await metrics.cleanup()

    async def work(self) -> None:
        """Starts up, step by step, and then consumes for ever."""
        for step in self.startup.steps():
            await self.persistently(step)
        self.spawn(self.startup.beats())
        self.spawn(self.runner.watch())
        self.spawn(self.startup.sweeps())
        await self.bus.consume()

    async def persistently(self, step: Callable[[], Awaitable[None]]) -> None:
        """Performs a step of the start-up; tries again while Redis is away."""
        while True:
            try:
                await step()
            except AWAY:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def stop(self, work: "asyncio.Task[None]") -> None:
        """Reads no more events, ends the sessions with their leases, and closes the connections last."""
        work.cancel()
        await self.bus.reader.close()
        with suppress(*AWAY):
            await self.startup.announce("stopping")
        await self.runner.drain()
        await asyncio.gather(*self.cancel_work(), return_exceptions=True)
        await self.link.close()
        self.events.log("info", "Stopped.")


PROGRAM = Program(
    settings=settings_from,
    components=Components,
    node=Worker,
    mutants="holdfast.reference.intents.mutants",
    stranger="holdfast.reference.intents.stranger",
    loop=without_created(asyncio.run),
)


def main(argv: list[str]) -> None:
    PROGRAM.main(argv)
