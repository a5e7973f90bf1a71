"""Violations of what a kill -9 of the worker leaves and what a restart mends (5.3)."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.bus import Entry
from holdfast.reference.intents.http import Http
from holdfast.reference.intents.mutants.reach import beats, nap
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.orchestrator import RUNNING, Orchestrator
from holdfast.reference.intents.polls import Polls
from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.runs import Run
from holdfast.reference.intents.startup import Startup
from holdfast.reference.intents.store import AWAY, Move, Record, Store
from holdfast.reference.shared.redislink import Call as Send
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.intents.api import Api

Steps = Sequence[Callable[[], Awaitable[None]]]


@violates("IN-KILL-01", 1, "The API exits or stops answering when the worker is gone.")
class StopsAnswering(Http):
    async def reply(self, request: web.BaseRequest, request_id: str) -> web.Response:
        while request.path not in {"/healthz", "/readyz"} and not await beats(self.node):
            await nap(0.1)
        return await super().reply(request, request_id)


@violates("IN-KILL-01", 2, "The API asks the worker for session state, so polls fail with 5xx.")
class AsksTheWorker(Polls):
    async def load(self, session_id: str) -> Record | None:
        if not await beats(self.node):
            raise RedisAway("The worker does not answer.")
        return await super().load(session_id)


violation(
    "IN-KILL-02",
    1,
    "The lease is bound to the worker's connection and vanishes with it.",
    lambda s: {"lease_ttl": s.lease_ttl / 10, "renew_every": s.renew_every / 10},
)


@violates("IN-KILL-02", 2, "Somebody else (the API, a helper process) goes on renewing.")
class ApiRenews(Acceptance):
    def __init__(self, node: "Api") -> None:
        super().__init__(node)
        node.spawn(self.renew_all())

    async def renew_all(self) -> None:
        while True:
            await asyncio.sleep(self.node.settings.renew_every)
            with suppress(*AWAY):
                for lease in await self.node.link.call("KEYS", "lease:*"):
                    await self.node.link.call("PEXPIRE", lease, int(self.node.settings.lease_ttl * 1000))


@violates("IN-KILL-03", 1, "The API treats leases of a worker without heartbeat as free.")
class DeadIsFree(Acceptance):
    async def dedup_lease(self, call: Call) -> None:
        try:
            await super().dedup_lease(call)
        except Refusal:
            if await beats(self.node):
                raise


@violates("IN-KILL-04", 1, "The other worker takes the channel over as soon as the dead one's connection is gone.")
class TakesOver(Orchestrator):
    async def dedup_lease(self, run: Run) -> bool:
        for lease in self.service_leases(run):
            holder = await self.load((await self.node.link.call("GET", lease) or b"").decode())
            if holder is not None and not await beats(self.node, holder.get("workerId", "*")):
                await self.node.link.call("DEL", lease)
        return await super().dedup_lease(run)


@violates("IN-KILL-04", 2, "Tuner use is known only to the dead worker, so its slot is booked twice at once.")
class BookedTwice(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        used = {each.slot for each in self.node.runner.runs.values()}
        for slot in [] if run.vod else [each for each in self.slots() if each not in used][:1]:
            await self.node.link.call("DEL", self.node.leases.key_tuner(slot))
        return await super().tuner_lease(run)


@violates("IN-KILL-04", 3, "The other worker caches the busy state and rejects after the expiry too.")
class BusyForEver(Orchestrator):
    busy: frozenset[str] = frozenset()

    async def dedup_lease(self, run: Run) -> bool:
        if run.session["serviceRef"] in self.busy:
            await super().on_busy(run)
            return False
        return await super().dedup_lease(run)

    async def on_busy(self, run: Run) -> None:
        self.busy |= {run.session["serviceRef"]}
        await super().on_busy(run)


violation(
    "IN-KILL-05",
    1,
    "The mapping to a session that is READY on paper without a pipeline is honoured for ever.",
    lua={"is_live": "return session.state == 'NEW' or is_running(session)", "is_overdue": "return false"},
)


@violates("IN-KILL-06", 1, "No flush; the zombie leases stay until the TTL.")
class NoFlush(Startup):
    async def flush(self) -> None:
        """Leaves zombie leases to their TTL."""


violation("IN-KILL-06", 2, "Only lease:service:* is flushed.", lua={"flushed_keys": "return 'lease:service:*'"})


@violates("IN-KILL-06", 3, "Only leases recorded for this worker's id are deleted, and a new process has a new id.")
class OwnLeasesOnly(Startup):
    async def flush(self) -> None:
        for lease in await self.node.link.call("KEYS", "lease:*"):
            holder = (await self.node.link.call("GET", lease) or b"").decode()
            session = await self.node.store.session(holder)
            if session is not None and self.node.orchestrator.runs_here(session):
                await self.node.link.call("DEL", lease)


@violates("IN-KILL-07", 1, "Consuming starts before the flush, so the queued intent meets the zombie lease.")
class ConsumesFirst(Startup):
    def steps(self) -> Steps:
        return (self.early, *super().steps())

    async def early(self) -> None:
        for entry in await self.node.bus.read():
            self.node.orchestrator.receive(entry)
        await asyncio.sleep(0.2)


@violates("IN-KILL-07", 2, "The flush runs beside the consumer and wipes the lease of an intent already handled.")
class FlushesBeside(Startup):
    async def ready(self) -> None:
        await super().ready()
        self.node.spawn(self.again())

    async def again(self) -> None:
        await asyncio.sleep(0.5)
        await self.flush()


@violates(
    "IN-KILL-08",
    1,
    "A start-up guard lock with random owner and a life of one lease_ttl keeps the restarted worker from running.",
)
class GuardLock(Startup):
    def steps(self) -> Steps:
        return (self.lock, *super().steps())

    async def lock(self) -> None:
        words = ("SET", "system:guard_lock", uuid.uuid4().hex, "PX", int(self.node.settings.lease_ttl * 1000))
        while not await self.node.link.call(*words, "NX"):
            await self.node.clock.sleep(0.05)
        self.node.spawn(self.keep(words))

    async def keep(self, words: tuple[str | int, ...]) -> None:
        while True:
            await asyncio.sleep(self.node.settings.renew_every / 4)
            with suppress(*AWAY):
                await self.node.link.call(*words)


class RunsThemAgain(Startup):
    """Starts what the killed worker was running, instead of ending it."""

    async def end_orphans(self) -> None:
        for name in await self.node.link.call("SMEMBERS", "sessions:running"):
            session_id = name.decode()
            await self.node.store.move(Move(session_id, RUNNING, "NEW"))
            self.node.orchestrator.receive(Entry("0-0", "session.start", session_id))


@violates("IN-KILL-08", 2, "Pending events of the dead consumer replay old starts, which take the channel first.")
class PendingReplayed(RunsThemAgain):
    pass


@violates("IN-KILL-09", 1, "FLUSHDB at worker start-up.")
class FlushesAll(Startup):
    async def flush(self) -> None:
        await self.node.link.call("FLUSHDB")


@violates(
    "IN-KILL-09", 2, "The flush sits in start-up code shared with the API, so an API restart frees a running channel."
)
class SharedStartUp(Store):
    async def prepare(self, call: Send) -> None:
        await super().prepare(call)
        if hasattr(self.node, "acceptance") and not self.node.link.connections:
            await self.run("flush_leases", {}, call)


@violates("IN-KILL-09", 3, "The flush sits in the reconnect handler.")
class FlushesOnReconnect(Store):
    async def prepare(self, call: Send) -> None:
        await super().prepare(call)
        if hasattr(self.node, "orchestrator") and self.node.link.connections:
            await self.run("flush_leases", {}, call)


@violates("IN-KILL-10", 1, "A stays READY in the store without a pipeline and captures every identical start.")
class NeverEnded(Startup):
    async def expire(self, *, all_: bool) -> None:
        """Leaves dead sessions READY."""


@violates("IN-KILL-10", 2, "The restarted worker runs A again by itself and so keeps the channel from new intents.")
class RunAgain(RunsThemAgain):
    pass


@violates(
    "IN-KILL-11",
    1,
    "The restarted worker waits longer than recover_p95 for a dead predecessor's heartbeat to age out before "
    "it consumes.",
)
class WaitsForHeartbeat(Startup):
    def steps(self) -> Steps:
        return (self.aged_out, *super().steps())

    async def aged_out(self) -> None:
        if await self.node.link.call("EXISTS", f"worker:{self.node.settings.node}"):
            await asyncio.sleep(4 * self.node.settings.worker_life)
