"""Violations of the service lease (3.2 step 1)."""

from collections.abc import Sequence

from holdfast.reference.intents.leases import Leases
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.orchestrator import RUNNING, Orchestrator, Step
from holdfast.reference.intents.runs import Run
from holdfast.reference.intents.store import Move


@violates(
    "IN-DEDUP-01",
    1,
    "No dedup lease, only a tuner lease: with the flag off nobody checks and both sessions of a channel run.",
)
class NoDedup(Orchestrator):
    def service_leases(self, run: Run) -> list[str]:  # noqa: ARG002  # that is the violation
        return []


@violates(
    "IN-DEDUP-01",
    2,
    "The worker's own id is the owner, so each of its sessions owns every lease, and in phase 1 every session "
    "is rejected.",
)
class WorkerOwns(Leases):
    def owner_for(self, session_id: str) -> str:  # noqa: ARG002  # that is the violation
        return self.node.store.node.settings.node


@violates("IN-DEDUP-02", 1, "The tuner lease is tried first.")
class TunerFirst(Orchestrator):
    def lease_steps(self) -> Sequence[Step]:
        return (self.tuner_lease, self.dedup_lease, self.take_session)


@violates("IN-DEDUP-02", 2, "A free tuner is reserved before the dedup verdict and handed back afterwards.")
class ReservedAndBack(Orchestrator):
    async def dedup_lease(self, run: Run) -> bool:
        for lease in map(self.node.leases.key_tuner, () if run.vod else self.slots()):
            if await self.node.leases.acquire(lease, run.id) == 1:
                await self.node.leases.release(lease, run.id)
                break
        return await super().dedup_lease(run)


@violates("IN-DEDUP-02", 3, "The verdict is recorded but the handler does not return and goes on to the tuner step.")
class GoesOn(Orchestrator):
    async def dedup_lease(self, run: Run) -> bool:
        return await super().dedup_lease(run) or (await self.tuner_lease(run) and False)


@violates(
    "IN-DEDUP-03", 1, "Acquire does not compare the owner: redelivery ends the running session with R_LEASE_BUSY."
)
class OwnerNotCompared(Orchestrator):
    async def dedup_lease(self, run: Run) -> bool:
        if run.session["state"] in RUNNING:
            await self.node.store.end(Move(run.id, RUNNING, "FAILED", "R_LEASE_BUSY"), run.id, [])
            return False
        return await super().dedup_lease(run)


@violates("IN-DEDUP-03", 2, "Re-entry falls through to a second tuner lease and a second pipeline.")
class SecondPipeline(Orchestrator):
    async def on_refused(self, run: Run, state: str | None) -> None:
        for lease in map(self.node.leases.key_tuner, self.slots() if state in RUNNING else ()):
            if await self.node.leases.acquire(lease, run.id) == 1:
                await self.node.pipelines.start(run.session)
                break


@violates("IN-DEDUP-03", 3, "The superfluous handler runs the normal cleanup and frees the running session's leases.")
class CleansUpAnyway(Orchestrator):
    async def on_refused(self, run: Run, state: str | None) -> None:  # noqa: ARG002  # that is the violation
        for lease in run.leases:
            await self.node.leases.release(lease, run.id)


violation(
    "IN-DEDUP-04",
    1,
    "One of the two keys is set without expiry.",
    lua={
        "take": """
write('SET', lease, owner, 'PX', life)
if string.find(lease, 'lease:tuner:', 1, true) then
  write('PERSIST', lease)
end""",
        "renew": "return redis.call('GET', lease) == owner",
    },
)
violation(
    "IN-DEDUP-04",
    2,
    "Leases are taken for ten times lease_ttl.",
    lua={"lease_life": "return whole(10 * limits.leaseTtlMs)"},
)
