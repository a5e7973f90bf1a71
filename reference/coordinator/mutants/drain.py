"""Violations of graceful shutdown (section 4, scenario A)."""

import asyncio

from holdfast.reference.coordinator.competing import CompetingQueue
from holdfast.reference.coordinator.drain import CoordinatorDrainService
from holdfast.reference.coordinator.handoff import JobHandoffPublisher, JobHandoffSubscriber, Offer
from holdfast.reference.coordinator.job_events import JobEvents, Read, Reading
from holdfast.reference.coordinator.messages import SHUTDOWN, Entry, Message, Payload
from holdfast.reference.coordinator.mutants.fences import MARKED, OWN_GROUP
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.ownership import Job


@violates("CO-DRAIN-01", 1, "Default signal action: the process dies and the jobs wait for crash detection.")
class DiesAtOnce(CoordinatorDrainService):
    async def on_sigterm(self) -> None:
        self.node.exit.force()


@violates("CO-DRAIN-01", 2, "The first ACK ends the wait.")
class FirstAckEnds(CoordinatorDrainService):
    async def hand_off_all(self) -> None:
        jobs = await self.jobs_to_hand_off()
        offers = [asyncio.ensure_future(self.node.publisher.hand_off(job, SHUTDOWN)) for job in jobs]
        await asyncio.wait(offers or [asyncio.ensure_future(asyncio.sleep(0))], return_when=asyncio.FIRST_COMPLETED)

    async def after_settled(self) -> None:
        pass


@violates("CO-DRAIN-02", 1, "The assignment consumer runs on until process exit.")
class GoesOnTaking(CoordinatorDrainService):
    async def stop_intake(self) -> None:
        await self.node.subscriber.stop()


@violates("CO-DRAIN-03", 1, "All job subscriptions are closed at the start of the drain.")
class LeavesItsJobs(CoordinatorDrainService):
    async def stop_intake(self) -> None:
        await super().stop_intake()
        self.node.job_events.readings.clear()


@violates("CO-DRAIN-04", 1, "One message with a list of jobs.")
class OneMessage(JobHandoffPublisher):
    async def publish(self, offer: Offer, attempt: int) -> None:
        if offer is next(iter(self.offers.values())):
            await super().publish(offer, attempt)

    def payload(self, offer: Offer) -> Payload:
        return {**super().payload(offer), "jobId": list(self.offers)}


@violates("CO-DRAIN-04", 2, "Reason Drain where the seed's names are declared.")
class ReasonDrain(JobHandoffPublisher):
    def payload(self, offer: Offer) -> Payload:
        return {**super().payload(offer), "reason": "Drain"}


@violates("CO-DRAIN-04", 3, "All running jobs of the store are published.", lua={"mark": MARKED})
class AllJobs(CoordinatorDrainService):
    async def jobs_to_hand_off(self) -> list[Job]:
        known, self.known = self.known, True
        others = set() if known else await self.node.store.members("jobs:active") - self.node.registry.jobs.keys()
        return [*await super().jobs_to_hand_off(), *(Job(job_id, "", 0) for job_id in others)]

    known = False


@violates(
    "CO-DRAIN-04",
    4,
    "Jobs finished earlier are published as well.",
    lua={"mark": MARKED, "finish": "", "counts": "return true"},
)
class FinishedToo(JobEvents):
    def finished(self, job: Job, status: str) -> None:
        pass


@violates("CO-DRAIN-05", 1, "The handoff consumer keeps running and takes back about half of the jobs.")
class TakesItsOwn(JobHandoffSubscriber):
    async def stop(self) -> None:
        pass

    def is_own_offer(self, message: Message) -> bool:  # noqa: ARG002  # that is the violation
        return False


@violates("CO-DRAIN-06", 1, "The node always waits for the hard timeout.")
class WaitsToTheEnd(CoordinatorDrainService):
    async def after_settled(self) -> None:
        await self.node.clock.sleep(self.deadline())


@violates("CO-DRAIN-06", 2, "An idle node runs the 30 s or 60 s wait regardless.")
class WaitsForNothing(CoordinatorDrainService):
    async def hand_off_all(self) -> None:
        if not self.node.registry.jobs:
            await self.node.clock.sleep(self.node.settings.orphan_wait)
        await super().hand_off_all()


@violates("CO-DRAIN-07", 1, "Jobs are handed off one after the other, each with its full ACK wait.")
class OneByOne(CoordinatorDrainService):
    async def hand_off_all(self) -> None:
        for job in await self.jobs_to_hand_off():
            await self.node.publisher.hand_off(job, SHUTDOWN)


@violates(
    "CO-DRAIN-08",
    1,
    "A blocked group read returns after SIGTERM and the entry is dropped, or the consumer is deleted with pending "
    "entries.",
)
class DropsTheLast(CompetingQueue):
    async def take(self, entries: list[Entry]) -> None:
        if self.reading:
            await super().take(entries)
            return
        for entry in entries:
            await self.node.transport.ack(entry)


@violates("CO-DRAIN-09", 1, "The leader skips the handoff because its orphan detector is expected to do it.")
class LeaderSkips(CoordinatorDrainService):
    async def jobs_to_hand_off(self) -> list[Job]:
        return [] if self.node.lease.terms else await super().jobs_to_hand_off()


@violates("CO-DRAIN-10", 1, "Entries pending at the old owner at the moment of the ACK are abandoned.")
class Abandons(JobEvents):
    async def recover_pending(self, reading: Reading) -> None:
        pass

    async def handle(self, reading: Reading, statuses: list[Read], logs: list[Read], *, pending: bool) -> bool:
        await self.node.clock.sleep(0.1)  # what was read is in hand for a while
        return await super().handle(reading, statuses, logs, pending=pending)


violation(
    "CO-DRAIN-10",
    2,
    "The new owner re-reads the channel from its beginning with a group of its own.",
    lua=OWN_GROUP,
)
