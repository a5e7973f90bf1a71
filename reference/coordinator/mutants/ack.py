"""Violations of the hybrid ACK strategy, cases A to D (section 4)."""

from datetime import datetime

from holdfast.reference.coordinator.drain import CoordinatorDrainService, Exit
from holdfast.reference.coordinator.handoff import JobHandoffAckListener, JobHandoffPublisher, Offer
from holdfast.reference.coordinator.messages import NODE_CRASH, Message, Payload
from holdfast.reference.coordinator.mutants.fences import ANYBODY
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.topics import Topics


@violates("CO-ACK-01", 1, "The retry timer is not cancelled by the ACK.")
class RetriesAnyway(JobHandoffPublisher):
    async def hand_over(self, offer: Offer) -> None:
        self.node.spawn(self.once_more(offer))
        await super().hand_over(offer)

    async def once_more(self, offer: Offer) -> None:
        await self.node.clock.sleep(self.ack_timeout(0))
        await self.publish(offer, offer.attempt + 1)


@violates("CO-ACK-01", 2, "The registry is cleared only at exit.")
class KeptInTheRegistry(JobHandoffPublisher):
    async def hand_over(self, offer: Offer) -> None:
        self.node.job_events.leave(offer.job)


@violates(
    "CO-ACK-01",
    3,
    "Job subscriptions end only at process exit, so old and new owner share the events.",
    lua=ANYBODY,
)
class ReadsOn(JobHandoffPublisher):
    async def hand_over(self, offer: Offer) -> None:
        reading = self.node.job_events.readings.get(offer.job.id)
        await super().hand_over(offer)
        if reading is not None:
            self.node.job_events.readings[offer.job.id] = reading


@violates(
    "CO-ACK-01",
    4,
    "The ACK topic is subscribed only after the first publication, so an instant ACK is lost and the job is published "
    "again.",
)
class ListensTooLate(JobHandoffPublisher):
    listens = False

    async def publish(self, offer: Offer, attempt: int) -> None:
        topics, topic = self.node.topics, self.node.acks.topic()
        first, self.listens = not self.listens, True
        if first:
            topics.on(topic, lambda _: None)
            topics.last.pop(topic, None)
        await super().publish(offer, attempt)
        if first:
            await topics.begin(self.node.link.call)
            topics.on(topic, self.node.acks.on_ack)


@violates("CO-ACK-02", 1, "Any ACK on the node's topic settles the oldest pending handoff.")
class SettlesTheOldest(JobHandoffAckListener):
    def on_ack(self, message: Message) -> None:
        for offer in list(self.node.publisher.offers.values())[:1]:
            offer.settle(message.text("newOwner"))


@violates("CO-ACK-02", 2, "The listener reads all nodes' ACK topics and takes ACKs meant for others.")
class HearsAllTopics(Topics):
    async def listen_once(self) -> None:
        pattern = self.node.names.channel("handoff_ack", nodeId="*")
        for topic in await self.node.store.call("KEYS", pattern):
            self.on(topic.decode(), self.node.acks.on_ack)
            self.last.setdefault(topic.decode(), "0-0")
        await super().listen_once()


@violates("CO-ACK-02", 3, "Parsing fails on the missing newOwner and the ACK is dropped.")
class WantsNewOwner(JobHandoffAckListener):
    def on_ack(self, message: Message) -> None:
        if message.text("newOwner"):
            super().on_ack(message)


@violates("CO-ACK-03", 1, "No retry: the node goes straight to case C.")
class NoRetry(JobHandoffPublisher):
    def max_retries(self) -> int:
        return 0


@violates("CO-ACK-03", 2, "Retries in a tight loop without waiting.")
class TightLoop(JobHandoffPublisher):
    def ack_timeout(self, attempt: int) -> float:
        return 0.0 if attempt < self.max_retries() else super().ack_timeout(attempt)


@violates("CO-ACK-03", 3, "Retries carry reason NodeCrash.")
class CrashOnRetry(JobHandoffPublisher):
    def payload(self, offer: Offer) -> Payload:
        return {**super().payload(offer), **({"reason": NODE_CRASH} if offer.attempt else {})}


@violates("CO-ACK-04", 1, "Retries go on until exit.")
class NeverGivesUp(JobHandoffPublisher):
    def max_retries(self) -> int:
        return 10_000


@violates("CO-ACK-04", 2, "Exponential back-off: each wait between retries is twice the one before.")
class BacksOff(JobHandoffPublisher):
    def ack_timeout(self, attempt: int) -> float:
        return super().ack_timeout(attempt) * 2.0**attempt


@violates("CO-ACK-05", 1, "ACKs are honoured in the first 5 s only.")
class FirstWaitOnly(JobHandoffAckListener):
    def on_ack(self, message: Message) -> None:
        offer = self.node.publisher.offers.get(message.text("jobId"))
        if offer is not None and offer.attempt == 0:
            super().on_ack(message)


@violates("CO-ACK-05", 2, "An ACK older than the latest re-publication is dropped as stale.")
class DropsStale(JobHandoffAckListener):
    def on_ack(self, message: Message) -> None:
        offer = self.node.publisher.offers.get(message.text("jobId"))
        said = message.text("timestamp")
        if offer is None or not said or datetime.fromisoformat(said) >= datetime.fromisoformat(offer.stamp):
            super().on_ack(message)


@violates("CO-ACK-06", 1, "The mark is kept in the memory of the exiting process.")
class MarkedInMemory(JobHandoffPublisher):
    async def give_up(self, offer: Offer) -> None:
        self.node.spawn(self.late(offer))


violation(
    "CO-ACK-06",
    2,
    "The status is overwritten with ORPHAN_PENDING.",
    lua={
        "mark": """
local field = facts.state == 'ORPHAN_PENDING' and 'status' or 'ownershipState'
write('HSET', job_key(facts.jobId), field, facts.state)
return {marked = true}
"""
    },
)


@violates(
    "CO-ACK-07",
    1,
    "The first job to time out ends the drain for all: the others are marked too and not retried.",
)
class FirstTimeoutEnds(JobHandoffPublisher):
    first: Offer | None = None

    async def publish(self, offer: Offer, attempt: int) -> None:
        if attempt:
            self.first = self.first or offer
        if self.first in (None, offer):
            await super().publish(offer, attempt)


@violates("CO-ACK-08", 1, "Exit right after the last retry.")
class ExitsAtOnce(CoordinatorDrainService):
    async def after_settled(self) -> None:
        pass


@violates("CO-ACK-08", 2, "The wait runs once per given-up job.")
class WaitsForEach(CoordinatorDrainService):
    async def after_settled(self) -> None:
        for _ in list(self.node.registry.jobs):
            await super().after_settled()


@violates("CO-ACK-09", 1, "The ACK listener is closed when the retries end.")
class DeafAfterRetries(JobHandoffPublisher):
    async def late(self, offer: Offer) -> None:
        pass


@violates("CO-ACK-10", 1, "Each late ACK restarts the timers.")
class Restarts(CoordinatorDrainService):
    def deadline(self) -> float:
        return 10 * super().deadline()

    async def nothing_left(self, seconds: float) -> None:
        before = -1
        while before != self.node.registry.count():
            before = self.node.registry.count()
            await super().nothing_left(min(seconds, self.node.settings.handoff_hard_timeout))


@violates("CO-ACK-10", 2, "The drain awaits a Redis call without timeout.")
class NoHardLimit(Exit):
    def within(self, seconds: float) -> None:
        pass


@violates("CO-ACK-11", 1, "No live peers known: immediate exit.")
class LonelyExit(CoordinatorDrainService):
    async def hand_off_all(self) -> None:
        if self.node.health.live_peers():
            await super().hand_off_all()

    async def after_settled(self) -> None:
        if self.node.health.live_peers():
            await super().after_settled()


@violates(
    "CO-ACK-12",
    1,
    "Shutdown cleanup clears the node's ownership records, so no query finds the jobs.",
)
class CleansUp(CoordinatorDrainService):
    async def after_settled(self) -> None:
        for job in list(self.node.registry.jobs.values()):
            await self.node.ownership.release(job, "")
        await super().after_settled()


@violates("CO-ACK-12", 2, "Jobs left over at the forced exit are marked Failed.")
class MarksFailed(CoordinatorDrainService):
    async def after_settled(self) -> None:
        for job_id in list(self.node.registry.jobs):
            await self.node.store.keep(f"job:{job_id}", {"status": "Failed"})
        await super().after_settled()
