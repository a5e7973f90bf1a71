"""Puts the rooms together for a run: the guardian on the main thread, everything else on one loop in a thread."""

import asyncio
import contextlib
import gc
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from holdfast.audit import Audit
from holdfast.chaos.links import LinkServer
from holdfast.chaos.plane import Plane
from holdfast.chaos.schedule import Schedule
from holdfast.deployment import Deployment, Link, Wanted
from holdfast.fixtures.deploy import Ground, LocalDeployments, StartLinks, python_modules
from holdfast.fixtures.launcher import Command, Guardian, LaunchKind
from holdfast.fixtures.lent import LentRedis
from holdfast.fixtures.ports import PortPool
from holdfast.loops import new_loop
from holdfast.perform import Outcome
from holdfast.scheduler import Job, Scheduler
from holdfast.stream import Stream
from holdfast.target import Target
from holdfast.timings import Timings

R = TypeVar("R")
# Sees each outcome on the loop, before the main thread does; may cancel what is no longer needed.
Watcher = Callable[[Scheduler, Job, Outcome], None]
FaultEngine = Literal["links", "relay", "toxiproxy"]
_LAST_WORDS = 10.0
_COLLECTOR = (10_000, 10, 1_000)
# Forked in every deployment, so imported once, before the first fork.
_OUR_PROCESSES = (
    "holdfast.chaos.linkserver",
    "holdfast.chaos.relay.process",
    "holdfast.fixtures.gateway",
    "holdfast.fixtures.sink",
    "holdfast.fixtures.stress",
)


@dataclass(frozen=True)
class EngineOptions:
    launcher: LaunchKind = "fork"
    redis_url: str | None = None
    stress: int = 0
    overlap: int = 24
    preload: tuple[str, ...] = ()
    faults: FaultEngine = "links"
    seed: int = 0
    schedule: Schedule | None = None


class Engine:
    """Made and closed on the main thread; what it runs, runs on its own loop."""

    def __init__(self, target: Target, stream: Stream, options: EngineOptions) -> None:
        self._stream = stream
        self._options = options
        nodes = [*python_modules(target), *options.preload] if options.launcher == "fork" else []
        self._guardian = Guardian.launch(preload=[*nodes, *_OUR_PROCESSES])
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="checks", daemon=True)
        self._thread.start()
        self._ports = PortPool()
        self.audit = Audit()
        self._deployments: LocalDeployments | None = None
        # A signal handler puts into it while the same thread may be inside it, which only this kind of queue bears.
        self._finished: queue.SimpleQueue[tuple[Job, Outcome] | BaseException | None] = queue.SimpleQueue()
        self._closed = False

    @property
    def folder(self) -> Path:
        return self._guardian.folder

    def open(self) -> None:
        _spare_the_loop()
        self.call(self._open())

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def lease(self, wanted: Wanted, target: Target, timings: Timings) -> Deployment:
        return self.call(self._deployments_now().lease(wanted, target, timings))

    def try_target(self, target: Target, timings: Timings) -> None:
        """Start one copy, so that a target which can't start says so once and not in every check."""
        self.call(self._try_target(target, timings))

    def run(self, jobs: Sequence[Job], on_done: Watcher | None = None) -> Iterator[tuple[Job, Outcome]]:
        """Outcomes in the order in which checks finish."""
        future = asyncio.run_coroutine_threadsafe(self._run(jobs, on_done), self._loop)
        try:
            while (item := self._finished.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            future.cancel()

    def interrupt(self) -> None:
        """Let `run` raise KeyboardInterrupt. Raised by a signal handler it may strike, and be lost, anywhere."""
        self._finished.put(KeyboardInterrupt())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._give_back_what_was_lent()
        self._loop.call_soon_threadsafe(self.audit.stop)
        self._guardian.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._ports.close()

    def _give_back_what_was_lent(self) -> None:
        """Everything else ends with the guardian; a Redis of the user's does not, so our keys go now."""
        if self._options.redis_url and self._deployments:
            future = asyncio.run_coroutine_threadsafe(self._deployments.close(), self._loop)
            with contextlib.suppress(TimeoutError):
                future.result(_LAST_WORDS)

    def _deployments_now(self) -> LocalDeployments:
        if self._deployments is None:
            raise RuntimeError("open the engine before it is used")
        return self._deployments

    async def _open(self) -> None:
        await self._guardian.attach()
        self.audit.start()
        lent = LentRedis(self._options.redis_url) if self._options.redis_url else None
        start_links = _engine_of(self._options)
        self._deployments = LocalDeployments(
            Ground(
                self._guardian,
                self._ports,
                start_links,
                self._options.launcher,
                lent,
                make_plane=partial(Plane, schedule=self._options.schedule),
                join_link=_join_link,
            )
        )
        for number in range(self._options.stress):
            await self._guardian.spawn(Command(python="holdfast.fixtures.stress:main"), name=f"stress-{number}")

    async def _try_target(self, target: Target, timings: Timings) -> None:
        deployments = self._deployments_now()
        deployment = await deployments.lease(Wanted("shared", frozenset(), {}), target, timings)
        await deployments.give_back(deployment)

    async def _run(self, jobs: Sequence[Job], on_done: Watcher | None) -> None:
        def done(job: Job, outcome: Outcome) -> None:
            if on_done:
                on_done(scheduler, job, outcome)
            self._finished.put((job, outcome))

        scheduler = Scheduler(self._deployments_now(), self.audit, self._stream, self._options.overlap, done)
        try:
            await scheduler.run(jobs)
        except BaseException as error:
            self._finished.put(error)
            raise
        self._finished.put(None)


def _engine_of(options: EngineOptions) -> StartLinks:
    """Where the links of a run stand: in our own link process, or in proxies of a fault engine."""
    if options.faults == "links":
        return _own_links
    from holdfast.chaos.engines import relay_links, toxiproxy_links

    return relay_links(options.seed) if options.faults == "relay" else toxiproxy_links()


async def _own_links(guardian: Guardian, _ports: PortPool, name: str) -> LinkServer:
    return await LinkServer.start(guardian, name)


async def _join_link(url: str, proxy: str) -> Link:
    from holdfast.chaos.engines import join_link

    return await join_link(url, proxy)


def _spare_the_loop() -> None:
    """What was imported stays, so it need not be gone through again; each full collection stopped the loop for 300 ms.

    What checks leave behind dies young; the rest is looked at a hundred times less often than Python would.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR)
