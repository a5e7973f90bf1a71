"""Watches lock and owners of a scenario while faults are on, and judges their history at its end.

- One leader by lock: L always has an expiry, so that no value stays for good.
- One leader by action, where the check asks for the tap: each dispatch and each offer of ownership comes from a node
  whose value L may have had when it was written. A node that was slow on its way to Redis is excused: what a leader
  wrote may have arrived when it led no more, and without fencing in the store nobody can help that.
- One owner: no job is that of two nodes for longer than it may take to move, as the store tells.
- Nothing twice: each job that the leader dispatched was dispatched once.

A finding of the watch is about the first row that the scenario verifies.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from redis.exceptions import RedisError

from holdfast.check.finding import Inconclusive, demand
from holdfast.check.hooks import HookError
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.lock import SAMPLE_EVERY
from holdfast.conformance.coordinator.scenarios.history import LockHistory, Owners, dispatched_twice
from holdfast.conformance.coordinator.store import JOBS_OF
from holdfast.conformance.coordinator.wire import ASSIGNED, DISPATCH
from holdfast.target.fault import Window

# Faults under which a command may arrive long after it was sent.
_HOLDING = frozenset({"delay", "slow", "rate", "stall", "lose", "frozen", "stop"})
# Seconds between two questions about owners, in samples of L.
_OWNERS_EVERY = 5
_MOST_SHOWN = 3


class Watch:
    """Samples L and asks the store for owners, until it is told to judge."""

    def __init__(self, cluster: Cluster, deeds: Deeds | None) -> None:
        self._cluster = cluster
        self._deeds = deeds
        self._lock = LockHistory()
        self._owners = Owners()
        self._since = cluster.T.now()
        self._over = False

    def end(self) -> None:
        """Lets the look that is under way be the last one."""
        self._over = True

    async def go_on(self) -> None:
        """Looks again and again; a Redis that is away is no reason to end."""
        asks, turn = await self._cluster.store.has(JOBS_OF), 0
        while not self._over:
            with suppress(RedisError, OSError, HookError, Inconclusive):
                self._lock.samples.append(await self._cluster.lock.sample())
                if asks and turn % _OWNERS_EVERY == 0:
                    await self._ask_owners()
            turn += 1
            await self._cluster.T.sleep(SAMPLE_EVERY, "the next look of the watch")

    async def _ask_owners(self) -> None:
        began = self._cluster.T.now()
        told = {id_: await self._cluster.store.jobs_of(id_) for id_ in await self._cluster.node_ids()}
        self._owners.told(told, Moment(began.lo, self._cluster.T.now().hi))

    # --- judging

    async def judge(self) -> None:
        """Judges everything that was seen."""
        T = self._cluster.T
        if not self._lock.samples:
            raise Inconclusive("the lock could not be read even once")
        self._cluster.context.transcript.note(f"the watch has read the lock {len(self._lock.samples)} times")
        endless = "; ".join([*self._lock.endless()][:_MOST_SHOWN])
        demand(not endless, "an expiry of every value in the lock", endless, "a leader may die at any time")
        doubled = "; ".join([*self._owners.doubled(T.never("claim_latency"))][:_MOST_SHOWN])
        demand(not doubled, "one owner of each job", doubled, "in look after look at the store", unsafe=True)
        dispatches = [each for each in await self._cluster.bus.all_entries(DISPATCH) if each.at.hi >= self._since.lo]
        twice = ", ".join(dispatched_twice(dispatches)[:_MOST_SHOWN])
        demand(not twice, "each job dispatched once", f"{twice} more than once", "under all faults of the scenario")
        if self._deeds:
            jobs = {each.message.job_id for each in dispatches}  # other offers are the suite's own
            offers = await self._cluster.found(ASSIGNED, lambda entry: entry.message.job_id in jobs, since=self._since)
            judged = sum([await self._by_a_leader(each, self._deeds) for each in dispatches + offers])
            self._cluster.context.transcript.note(f"of {len(dispatches + offers)} deeds of leaders {judged} are judged")

    async def _by_a_leader(self, entry: Entry, deeds: Deeds) -> bool:
        """Judges that who wrote this may have had its value in L then; returns whether that could be told."""
        slack = self._cluster.T.tolerance
        writers = deeds.writers(entry)
        if not writers or not self._lock.known_at(entry.at, slack):
            return False
        values = self._lock.held_at(entry.at, slack)
        leading = [await self._node_of(value, deeds) for value in values]
        if "" in leading or any(self._held_up(node, entry) for node in writers):
            return False
        who = " or ".join(sorted(leading)) or "nobody"
        told = f"{' or '.join(sorted(writers))} wrote {entry.describe()} while {who} led"
        demand(writers & set(leading), "deeds of a leader by the node that leads", told, unsafe=True)
        return True

    async def _node_of(self, value: str, deeds: Deeds) -> str:
        return await self._cluster.leader_by(value) or deeds.claimant(value)

    def _held_up(self, node: str, entry: Entry) -> bool:
        """Whether something of this node's may have been on its way for long."""
        subjects = {node, f"{node}-redis", "redis"}

        def holds(window: Window) -> bool:
            if window.fault.kind not in _HOLDING or window.fault.subject not in subjects:
                return False
            # A node that was stopped sends nothing meanwhile, and finds out how late it is as soon as it goes on.
            end = window.in_force if window.fault.kind == "stop" else window.healed
            return window.asked <= entry.at.hi and entry.at.lo <= end + self._cluster.T.tolerance

        return any(holds(window) for window in self._cluster.context.windows)


@asynccontextmanager
async def watching(cluster: Cluster, deeds: Deeds | None = None) -> AsyncIterator[Watch]:
    """Watches lock and owners during the block, and judges their history after it."""
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.live)
    watch = Watch(cluster, deeds)
    looking = cluster.beside(watch.go_on())
    yield watch
    await cluster.T.sleep(cluster.T.tolerance, "the last looks of the watch")
    watch.end()
    await asyncio.wait({looking}, timeout=cluster.never("claim_latency"))  # a Redis without an answer must not hold us
    if looking.done():
        looking.result()
    with cluster.context.about(cluster.context.spec.claims[0].id):
        await watch.judge()
