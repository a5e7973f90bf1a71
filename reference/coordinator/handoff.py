"""Handing jobs over (section 4): one component publishes, one takes, one hears the ACKs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.reference.coordinator.messages import REBALANCE, Entry, Message, Payload, execution
from holdfast.reference.coordinator.ownership import HANDING_OFF, ORPHAN_PENDING, OWNED, Claim, Job
from holdfast.reference.coordinator.store import AWAY, Record

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

RETRY_SECONDS = 0.1
Result = TypeVar("Result")


def handoff(job_id: str, history_id: str, reason: str, former: str, ack_to: str, stamp: str) -> Payload:
    """Returns the offer of a job: its previous owner, and who waits for the acknowledgement."""
    return {
        "jobId": job_id,
        "reason": reason,
        **execution(history_id),
        "fromNodeId": former,
        "ackTo": ack_to,
        "timestamp": stamp,
    }


@dataclass
class Offer:
    """A job that is being handed off, and its last publication. `settled` is the new owner's id, or empty for none."""

    job: Job
    reason: str
    attempt: int = 0
    stamp: str = ""
    settled: "asyncio.Future[str]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, new_owner: str) -> None:
        if not self.settled.done():
            self.settled.set_result(new_owner)


class JobHandoffPublisher:
    """Cases A to C of the hybrid ACK strategy, for each job by itself."""

    def __init__(self, node: "Node") -> None:
        self.node = node
        self.offers: dict[str, Offer] = {}

    def ack_timeout(self, attempt: int) -> float:  # noqa: ARG002  # a seam: every wait is as long as the first
        return self.node.settings.handoff_ack_timeout

    def max_retries(self) -> int:
        return self.node.settings.handoff_max_retries

    async def hand_off(self, job: Job, reason: str) -> None:
        """Offers a job until it is acknowledged (A), again after each timeout (B), or given up (C)."""
        offer = self.offers[job.id] = Offer(job, reason)
        if await self.persistently(lambda: self.node.ownership.mark(job, HANDING_OFF)):
            for attempt in range(1 + self.max_retries()):
                await self.persistently(lambda attempt=attempt: self.publish(offer, attempt))  # type: ignore[misc]  # mypy knows no default in a lambda
                if await self.settled_within(offer, self.ack_timeout(attempt)):
                    return await self.hand_over(offer)
            return await self.give_up(offer)
        self.offers.pop(job.id, None)  # another's already, or finished
        return self.node.registry.drop(job)

    async def publish(self, offer: Offer, attempt: int) -> None:
        offer.attempt, offer.stamp = attempt, self.node.clock.stamp()
        payload = {**self.payload(offer), "attempt": attempt}
        await self.node.transport.publish_queue("handoff", payload)
        self.node.metrics.handoffs.labels(offer.reason).inc()
        self.node.events.emit("job.handoff", jobId=offer.job.id, reason=offer.reason, attempt=attempt)

    def payload(self, offer: Offer) -> Payload:
        """Returns the message; every copy says the same."""
        job, me = offer.job, self.node.id
        return handoff(job.id, job.history_id, offer.reason, me, me, offer.stamp)

    async def settled_within(self, offer: Offer, seconds: float) -> bool:
        timer = asyncio.ensure_future(self.node.clock.sleep(seconds))
        waited: set[asyncio.Future[Any]] = {timer, offer.settled}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        return offer.settled.done()

    async def hand_over(self, offer: Offer) -> None:
        """Case A: the job leaves the registry and the store's list, and its channels are read no more."""
        new_owner = offer.settled.result()
        self.offers.pop(offer.job.id, None)
        self.node.registry.drop(offer.job)
        await self.persistently(lambda: self.node.ownership.release(offer.job, new_owner))
        self.node.events.emit("job.handed_over", jobId=offer.job.id, newOwner=new_owner)

    async def give_up(self, offer: Offer) -> None:
        """Case C: the job is marked for the leader to find; a late acknowledgement still counts."""
        if offer.reason == REBALANCE:
            self.offers.pop(offer.job.id, None)
            await self.persistently(lambda: self.node.ownership.mark(offer.job, OWNED))
            return
        if not await self.persistently(lambda: self.node.ownership.mark(offer.job, ORPHAN_PENDING)):
            self.node.registry.drop(offer.job)
            return
        self.node.events.emit("job.orphan_pending", jobId=offer.job.id)
        self.node.spawn(self.late(offer))

    async def late(self, offer: Offer) -> None:
        await offer.settled
        await self.hand_over(offer)

    def settled(self, job: Job) -> None:
        """A job that has finished meanwhile needs no new owner."""
        if job.id in self.offers:
            self.offers[job.id].settle("")

    async def persistently(self, step: Callable[[], Awaitable[Result]]) -> Result:
        """Performs a step; tries again while Redis is away. What ends it is the hard limit of the drain."""
        while True:
            try:
                return await step()
            except AWAY:
                await self.node.clock.sleep(RETRY_SECONDS)


class JobHandoffAckListener:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def topic(self) -> str:
        """Returns this node's own topic. It is listened to from the start, so before anything is offered."""
        return self.node.names.channel("handoff_ack", nodeId=self.node.id)

    def on_ack(self, message: Message) -> None:
        """Settles the job that is named, if it is being handed off; one without NewOwner counts too."""
        offer = self.node.publisher.offers.get(message.text("jobId"))
        if offer is not None:
            offer.settle(message.text("newOwner"))


class JobHandoffSubscriber:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def enabled(self) -> bool:
        """Every node competes, but not while it hands jobs off itself: it would win them back."""
        return not self.node.rebalancer.busy

    async def stop(self) -> None:
        """Takes no more; what was received already is taken."""
        await self.node.handoffs.stop()

    async def on_handoff(self, entry: Entry) -> None:
        """Takes a job over, unless it has another owner by now; its present owner acknowledges a copy once more."""
        message = entry.message
        if message is None or not message.text("jobId") or self.is_own_offer(message):
            return
        former = message.text("fromNodeId")
        if not former:
            record = await self.node.store.job(message.text("jobId"))
            if not self.may_relieve(record):
                return
            former = record.get("ownerNode", "")
        claim = await self.claim(message, former)
        if claim.mine:
            await self.take(message, claim)

    def is_own_offer(self, message: Message) -> bool:
        """Tells whether this is an offer of this node itself, left over from a rebalancing that nobody answered."""
        return message.text("fromNodeId") == self.node.id == message.text("ackTo")

    def may_relieve(self, record: Record) -> bool:
        """Tells whether a handoff that names no previous owner may take the job from the one that it has."""
        owner = record.get("ownerNode", "")
        if owner in {"", self.node.id} or record.get("ownershipState") in {HANDING_OFF, ORPHAN_PENDING}:
            return True
        return self.node.health.may_be_relieved(owner)

    async def claim(self, message: Message, former: str) -> Claim:
        return await self.node.ownership.claim(message.text("jobId"), former)

    async def take(self, message: Message, claim: Claim) -> None:
        for step in self.order():
            await step(message, claim)
        self.node.events.emit("job.owned", jobId=claim.job.id, by="handoff")

    def order(self) -> Sequence[Callable[[Message, Claim], Awaitable[None]]]:
        return (self.subscribe, self.acknowledge)

    async def subscribe(self, message: Message, claim: Claim) -> None:  # noqa: ARG002  # both steps are called alike
        await self.node.registry.take(claim.job)

    async def acknowledge(self, message: Message, claim: Claim) -> None:
        if waiting := self.ack_to(message, claim):
            await self.node.transport.publish_topic("handoff_ack", self.ack_payload(claim), nodeId=waiting)

    def ack_to(self, message: Message, claim: Claim) -> str:
        """Returns the node that waits for the acknowledgement."""
        return message.text("ackTo", "fromNodeId") or claim.former

    def ack_payload(self, claim: Claim) -> Payload:
        names = {"jobId": claim.job.id, "newOwner": self.node.id}
        return {**names, **execution(claim.job.history_id), "timestamp": self.node.clock.stamp()}
