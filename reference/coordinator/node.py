"""One coordinator (sections 1 to 7). Start it with `python -m holdfast.reference.coordinator`.

Where the document's sections are: 1 `lease.py` and `duties.py`; 2 `names.py`, `messages.py`, `transport.py`,
`competing.py` and `topics.py`; 3 `assignments.py`, `job_events.py`, `heartbeat.py` and `rebalancer.py`; 4 `drain.py`,
`handoff.py`, `health.py` and `orphans.py`; 5 `ownership.py`, with `registry.py` as what the node knows of it;
6 `settings.py`; 7 follows from all of them.

A node keeps nothing that the cluster needs: a kill loses what Redis was not told yet, and every message stays pending
until what it says is stored.
"""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import prometheus_client
from aiohttp import web

from holdfast.reference.coordinator.components import Components
from holdfast.reference.coordinator.scripts import limits
from holdfast.reference.coordinator.settings import Settings, settings_from
from holdfast.reference.shared.background import Background
from holdfast.reference.shared.program import Program
from holdfast.reference.shared.redislink import RedisLink


class Node(Background):
    """Wires the components of a node together."""

    def __init__(self, settings: Settings, components: Components) -> None:
        super().__init__()
        self.settings = components.settings(settings)
        self.ids = components.ids()
        self.id = self.settings.node_id or self.ids.node_id()
        self.draining = False
        self.ready = False
        self.clock = components.clock()
        self.exit = components.exit()
        self.events = components.events(self.id, sys.stdout.buffer)
        self.names = components.names(self.settings.names)
        self.scripts = components.scripts(limits(), components.lua)
        self.metrics = components.metrics()
        self.store = components.store(self)
        self.link = components.link(self.settings.redis_url, self.store.prepare)
        self.transport = components.transport(self)
        self._make_members(components)
        self._make_handoff(components)
        self.http = components.http(self)
        self.startup = components.startup(self)

    def _make_members(self, components: Components) -> None:
        """Leadership, membership, ownership."""
        published = self.settings.topics == "pubsub"
        self.topics = components.published_topics(self) if published else components.topics(self)
        self.lease = components.lease(self)
        self.challenge = components.challenge(self)
        self.duties = [
            components.scheduler(self),
            components.dispatcher(self),
            components.cancels(self),
            components.timeouts(self),
            components.orphans(self),
        ]
        self.ownership = components.ownership(self)
        self.registry = components.registry(self)
        self.job_events = components.job_events(self)
        self.heartbeat = components.heartbeat(self)
        self.health = components.health(self)
        self.workers = components.workers(self)

    def _make_handoff(self, components: Components) -> None:
        """What comes in by the competing queues, and goes out by handoffs."""
        self.assignments = components.assignments(self)
        self.subscriber = components.subscriber(self)
        self.assigned = components.queue(self, "assigned", self.assignments.on_assigned)
        self.handoffs = components.queue(self, "handoff", self.subscriber.on_handoff)
        self.queues = (self.assigned, self.handoffs)
        self.publisher = components.publisher(self)
        self.acks = components.acks(self)
        self.rebalancer = components.rebalancer(self)
        self.drain = components.drain(self)
        self.topics.on(self.names.channel("coordinator_heartbeat"), self.health.hear)
        self.topics.on(self.names.channel("worker_heartbeat"), self.workers.hear)
        self.topics.on(self.acks.topic(), self.acks.on_ack)

    async def run(self) -> None:
        self.stop_on_signals()
        self.topics.start()
        for link in self.links():
            link.start()
        server = web.ServerRunner(web.Server(self.http.handle, access_log=None))
        await server.setup()
        if self.settings.listen:
            host, _, port = self.settings.listen.rpartition(":")
            await web.TCPSite(server, host, int(port)).start()
        joined = self.spawn(self.startup.join())
        await self.stopping.wait()
        if not self.failed:
            await self.leave(joined)
        await self.stop()
        await server.cleanup()

    async def leave(self, joined: "asyncio.Task[None]") -> None:
        """Drains. A node that leaves jobs behind says so by its exit status."""
        if not self.ready:
            joined.cancel()
        await self.drain.on_sigterm()
        if self.registry.jobs:
            self.events.log("warning", "Jobs are left behind; the leader will find them.")
            self.exit.force()

    def links(self) -> list[RedisLink]:
        """Returns the connections: one for commands, and one for each read that blocks."""
        return [self.link, self.job_events.link, *(queue.link for queue in self.queues)]

    async def stop(self) -> None:
        await asyncio.gather(*self.cancel_work(), return_exceptions=True)
        await self.topics.close()
        for link in self.links():
            await link.close()
        self.events.log("info", "Stopped.")


def _run(work: Coroutine[Any, Any, bool]) -> bool:
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the package has no annotation
    return asyncio.run(work)


PROGRAM = Program(
    settings=settings_from,
    components=Components,
    node=Node,
    mutants="holdfast.reference.coordinator.mutants",
    loop=_run,
)


def main(argv: list[str]) -> None:
    PROGRAM.main(argv)
