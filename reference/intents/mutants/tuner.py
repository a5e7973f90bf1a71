"""Violations of the tuner lease (3.2 step 2)."""

from collections.abc import Sequence

from holdfast.reference.intents.mutants.table import violates
from holdfast.reference.intents.orchestrator import Orchestrator
from holdfast.reference.intents.runs import BUSY, Run
from holdfast.reference.intents.store import Move


@violates("IN-TUNER-01", 1, "No tuner lease; capacity is counted in worker memory.")
class CountedInMemory(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        used = {each.slot for each in self.node.runner.runs.values()}
        run.slot = next((slot for slot in self.slots() if slot not in used), None)
        if run.slot is None and not run.vod:
            await self.on_no_tuner(run)
        return run.vod or run.slot is not None


@violates("IN-TUNER-01", 2, "All sessions of a worker share slot 0 re-entrantly.")
class SharedSlot(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        first = self.node.leases.key_tuner(self.slots()[0]) if self.slots() and not run.vod else ""
        if first and await self.node.leases.acquire(first, run.id):
            run.leases.append(first)
        return bool(first) or await super().tuner_lease(run)


@violates("IN-TUNER-01", 3, "Only the first slot is tried; the second channel is rejected.")
class FirstSlotOnly(Orchestrator):
    def slots(self) -> Sequence[int]:
        return super().slots()[:1]


@violates("IN-TUNER-01", 4, "A running index is used instead of the configured slot number.")
class RunningIndex(Orchestrator):
    def slots(self) -> Sequence[int]:
        return range(len(super().slots()))


@violates("IN-TUNER-02", 1, "The session is left in NEW to be tried again later.")
class LeftNew(Orchestrator):
    async def on_no_tuner(self, run: Run) -> None:
        await self.node.store.move(Move(run.id, ("STARTING",), "NEW"))
        await self.on_refused(run, None)
        self.node.runner.remove(run)


@violates("IN-TUNER-02", 2, "Both rejections end with R_LEASE_BUSY.")
class BothBusy(Orchestrator):
    async def on_no_tuner(self, run: Run) -> None:
        await self.node.runner.finish(run, BUSY)


@violates("IN-TUNER-03", 1, "Early return without releasing the service lease; the channel stays blocked for one TTL.")
class ServiceKept(Orchestrator):
    async def on_no_tuner(self, run: Run) -> None:
        run.leases.clear()
        await super().on_no_tuner(run)


@violates("IN-TUNER-03", 2, "The pipeline is started before the tuner check.")
class PipelineFirst(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        early = await self.node.pipelines.start(run.session)
        held = await super().tuner_lease(run)
        await self.node.pipelines.stop(run.session, early)
        return held


@violates("IN-TUNER-04", 1, "VOD goes through the live path and is rejected for lack of a tuner.")
class RecordingNeedsTuner(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        run.session = {**run.session, "mode": "LIVE"}
        return await super().tuner_lease(run)


@violates("IN-TUNER-04", 2, "VOD takes a dedup lease on the recording, so the second offset is rejected busy.")
class RecordingIsChannel(Orchestrator):
    def service_leases(self, run: Run) -> list[str]:
        return [f"lease:service:{run.session['recordingId']}"] if run.vod else super().service_leases(run)
