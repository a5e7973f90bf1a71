"""Violations of the competition for ownership (section 3, step 2)."""

from typing import Any, ClassVar

from holdfast.reference.coordinator.competing import CompetingQueue
from holdfast.reference.coordinator.messages import Entry
from holdfast.reference.coordinator.mutants.fences import ADDED, ANYBODY, LOOSE
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.scripts import Scripts
from holdfast.reference.coordinator.store import Store
from holdfast.reference.coordinator.transport import Transport
from holdfast.reference.shared import split
from holdfast.reference.shared.redislink import Call
from holdfast.reference.shared.scriptstore import Facts


class Recording(split.Recording, Scripts):
    pass


@violates(
    "CO-ASSIGN-01",
    1,
    "The claim is read-then-write: two nodes racing for a doubled offer both record themselves as owner.",
    lua={**LOOSE, "own": ADDED},
)
class ReadThenClaim(split.SplitStore, Store):
    recording: ClassVar[type[split.Recording]] = Recording
    split: ClassVar[tuple[str, ...]] = ("claim",)
    gap: ClassVar[float] = 0.05


violation(
    "CO-ASSIGN-01",
    2,
    "The second receiver overwrites ownerNode and both consume.",
    lua={**LOOSE, "own": ADDED, "may_take": "return owner == expected or expected == ''"},
)


@violates(
    "CO-ASSIGN-02",
    1,
    "Ownership lives in process memory only.",
    lua={**ANYBODY, "own": "return 1", "may_take": "return true"},
)
class InMemory(Store):
    async def run(self, name: str, facts: Facts, call: Call | None = None) -> Any:
        if name != "resume":
            return await super().run(name, facts, call)
        jobs = self.node.registry.jobs.values()
        return {"jobs": [{"jobId": job.id, "historyId": job.history_id, "epoch": job.epoch} for job in jobs]}


@violates("CO-ASSIGN-02", 2, "XACK (or NOACK) on receipt, then claim.")
class AckFirst(CompetingQueue):
    async def read(self, start: str) -> list[Entry]:
        entries = await super().read(start)
        for entry in entries:
            await self.node.transport.ack(entry)
        return entries


@violates("CO-ASSIGN-03", 1, "The stream is read with COUNT 1000, so one node takes a whole burst.")
class WholeBurst(Transport):
    def read_count(self, kind: str) -> int:
        return 1000 if kind == "assigned" else super().read_count(kind)


@violates("CO-ASSIGN-04", 1, "Only new entries are ever read; pending entries of dead consumers stay for ever.")
class NewOnly(CompetingQueue):
    async def claim_stuck(self) -> None:
        pass
