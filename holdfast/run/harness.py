"""Puts the rooms together for a run: the guardian on the main thread, everything else on one loop in a thread.

The harness owns what a run needs to have standing: the guardian (which starts and ends every other process), the loop
with its thread, the ports, the audit and the deployments. It is made and closed on the main thread, because what the
guardian starts dies with the thread that asked for it. Checks run on the loop; outcomes come back to the main thread
through a queue, in the order in which they finish. Everything that was started ends with the guardian, except keys in
a Redis that the user gave us, which are removed first.
"""

import asyncio
import contextlib
import gc
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from holdfast.chaos.links.client import LinkServer
from holdfast.chaos.plane import Plane
from holdfast.chaos.schedules.storm import load_for
from holdfast.check.audit import Audit
from holdfast.check.finding import NotObservable
from holdfast.fixtures.deploy import LocalDeployments
from holdfast.fixtures.deployment_links import LinkHost
from holdfast.fixtures.external_redis import ExternalRedis
from holdfast.fixtures.launcher import Command, Guardian, Process
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import RunResources, StartLinks, python_modules
from holdfast.run.credentials import first_look
from holdfast.run.job import Job
from holdfast.run.loops import new_loop
from holdfast.run.options import FaultEngine, RunOptions
from holdfast.run.perform import Outcome
from holdfast.run.scheduler import Scheduler
from holdfast.run.stream import Stream
from holdfast.run.tokens import MOST_URGENT, URGENCY, OwnTokens, SharedTokens, Tokens
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.timings import Timings
from holdfast.target.deployment import Deployment, Link, Wanted
from holdfast.target.descriptor import Target

R = TypeVar("R")
# Called on the loop with each outcome, before the main thread has it; may cancel checks that are no longer needed.
Watcher = Callable[[Scheduler, Job, Outcome], None]
_LAST_WORDS = 10.0
_COLLECTOR = (10_000, 10, 1_000)
# Forked in every deployment, so imported once, before the first fork.
_OUR_PROCESSES = (
    "holdfast.chaos.links.process",
    "holdfast.chaos.relay.process",
    "holdfast.fixtures.gateway",
    "holdfast.fixtures.sink",
    "holdfast.fixtures.stress",
)


class Harness:
    """Made and closed on the main thread; what it runs, runs on its own loop."""

    def __init__(
        self,
        target: Target,
        stream: Stream,
        options: RunOptions | None = None,
        preload: Sequence[str] = (),
        tokens: Tokens | None = None,
    ) -> None:
        """`preload` are modules that forked nodes need besides those of the target; `tokens` are shared with others."""
        options = options or RunOptions()
        self._stream = stream
        self._overlap = options.overlap_at(target.time_scale)
        self._schedule = load_for(target, options.schedule) if options.schedule else None
        self._options = options
        self._tokens = tokens or OwnTokens()
        nodes = [*python_modules(target), *preload] if options.launcher == "fork" else []
        self._guardian = Guardian.launch(preload=[*nodes, *_OUR_PROCESSES])
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="checks", daemon=True)
        self._thread.start()
        self._ports = PortPool()
        self.audit = Audit()
        self._deployments: LocalDeployments | None = None
        # A signal handler may put into the queue while its thread is inside `get`; only SimpleQueue allows that.
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

    async def give_back(self, deployment: Deployment) -> None:
        await self._deployments_now().give_back(deployment)

    def spawner(self, name: str) -> Callable[[Sequence[str]], Awaitable[Process]]:
        """Returns what starts a program that ends with this run, its output in a log of this name."""

        async def spawn(argv: Sequence[str]) -> Process:
            return await self._guardian.spawn(Command(argv=list(argv)), name=name)

        return spawn

    def try_target(self, target: Target, catalogue: Catalogue) -> str | None:
        """Start one copy and give it back, so that a target which can't start fails once and not in every check.

        Returns what the descriptor gave us wrongly, in one sentence.
        """
        found: str | None = self.call(self._try_target(target, catalogue))
        return found

    def stillborn(self, variants: Iterable[str], target: Target, timings: Timings) -> dict[str, str]:
        """Start a copy of the target as each of these mutants; return why, for those that twice did not start."""
        failed = self.call(self._try_variants(list(variants), target, timings))
        return self.call(self._try_variants(list(failed), target, timings))

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
            self._let_it_happen()

    def _let_it_happen(self) -> None:
        """Return when the loop has cancelled the checks: one that goes on would blame the target for our leaving."""
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result(_LAST_WORDS)

    def interrupt(self) -> None:
        """Make `run` raise KeyboardInterrupt; raised in the signal handler itself it could be lost."""
        self._finished.put(KeyboardInterrupt())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._empty_external_redis()
        self._end_stores_nobody_took()
        self._loop.call_soon_threadsafe(self.audit.stop)
        self._guardian.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._ports.close()

    def _empty_external_redis(self) -> None:
        """Remove our keys from a Redis that the user gave us: it outlives the guardian, unlike everything else."""
        if self._options.redis_url and self._deployments:
            future = asyncio.run_coroutine_threadsafe(self._deployments.close(), self._loop)
            with contextlib.suppress(TimeoutError):
                future.result(_LAST_WORDS)

    def _end_stores_nobody_took(self) -> None:
        """End them before the guardian does, so that no start of one is under way when it goes."""
        if self._deployments:
            future = asyncio.run_coroutine_threadsafe(self._deployments.close_pool(), self._loop)
            with contextlib.suppress(TimeoutError):
                future.result(_LAST_WORDS)

    def _deployments_now(self) -> LocalDeployments:
        if self._deployments is None:
            raise RuntimeError("open the harness before it is used")
        return self._deployments

    async def _open(self) -> None:
        await self._guardian.attach()
        if isinstance(self._tokens, SharedTokens):
            self._tokens.attach()
        self.audit.start()
        external = ExternalRedis(self._options.redis_url) if self._options.redis_url else None
        self._deployments = LocalDeployments(
            RunResources(
                self._guardian,
                self._ports,
                _links_of(self._options),
                LinkServer.start,
                self._options.launcher.value,
                external,
                make_plane=partial(Plane, schedule=self._schedule),
                join_link=_join_link,
                start_udp_links=_udp_links_of(self._options),
            ),
            partial(self._tokens.place, "start"),
        )
        # Of several runners none keeps cores busy: each would, and it would be twice what was asked for.
        for number in range(0 if isinstance(self._tokens, SharedTokens) else self._options.stress):
            await self._guardian.spawn(Command(python="holdfast.fixtures.stress:main"), name=f"stress-{number}")

    async def _try_target(self, target: Target, catalogue: Catalogue) -> str | None:
        URGENCY.set(MOST_URGENT)  # nothing else of this run can begin before
        deployments = self._deployments_now()
        try:
            deployment = await deployments.lease(Wanted("shared", frozenset(), {}), target, target.timings(catalogue))
        except NotObservable:  # then every check says so itself
            return None
        try:
            return await first_look(target, catalogue, deployment, self.audit)
        finally:
            await deployments.give_back(deployment)

    async def _try_variants(self, variants: list[str], target: Target, timings: Timings) -> dict[str, str]:
        deployments = self._deployments_now()

        async def trouble(variant: str) -> str:
            try:
                wanted = Wanted("quiet", frozenset(), {}, variant=variant)
                await deployments.give_back(await deployments.lease(wanted, target, timings))
            except Exception as error:  # noqa: BLE001 - whatever keeps a mutant from starting is the answer
                return str(error) or type(error).__name__
            return ""

        tried = zip(variants, await asyncio.gather(*map(trouble, variants)), strict=True)
        return {variant: why for variant, why in tried if why}

    async def _run(self, jobs: Sequence[Job], on_done: Watcher | None) -> None:
        def done(job: Job, outcome: Outcome) -> None:
            if on_done:
                on_done(scheduler, job, outcome)
            self._finished.put((job, outcome))

        self._deployments_now().expect((job.wanted, job.target, job.timings) for job in jobs)
        scheduler = Scheduler(self._deployments_now(), self.audit, self._stream, self._overlap, done, self._tokens)
        try:
            await scheduler.run(jobs)
        except BaseException as error:
            self._finished.put(error)
            raise
        self._finished.put(None)


def _links_of(options: RunOptions) -> StartLinks:
    """What serves the links of a run: our own link process, or for scenarios the proxies of a fault engine."""
    if not options.scenarios:
        return _own_links
    from holdfast.chaos.engines import relay_links, toxiproxy_links

    return relay_links(options.seed) if options.engine is FaultEngine.RELAY else toxiproxy_links()


async def _own_links(guardian: Guardian, _ports: PortPool, name: str) -> LinkServer:
    return await LinkServer.start(guardian, name)


def _udp_links_of(options: RunOptions) -> StartLinks:
    """What serves the UDP links of a run, with any engine: our relay, imported when a target first has such a link."""

    async def start(guardian: Guardian, ports: PortPool, name: str) -> LinkHost:
        from holdfast.chaos.engines import udp_links

        return await udp_links(options.seed)(guardian, ports, name)

    return start


async def _join_link(url: str, proxy: str) -> Link:
    from holdfast.chaos.engines import join_link

    return await join_link(url, proxy)


def _spare_the_loop() -> None:
    """Keep the garbage collector from stopping the loop: a full collection took 300 ms.

    Imported modules are never freed, so they are taken out of its sight. What checks leave behind is short-lived and
    found by the young generations; the oldest one is searched a hundred times less often than by default.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR)
