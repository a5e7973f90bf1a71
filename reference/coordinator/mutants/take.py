"""Violations of taking over a job (section 4, scenario A, steps 4 and 5)."""

from collections.abc import Awaitable, Callable, Sequence

from holdfast.reference.coordinator.handoff import JobHandoffSubscriber
from holdfast.reference.coordinator.messages import NODE_CRASH, Entry, Message, Payload
from holdfast.reference.coordinator.mutants.fences import ADDED, LOOSE
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.orphans import OrphanJobDetector
from holdfast.reference.coordinator.ownership import Claim, Orphan
from holdfast.reference.coordinator.transport import Transport

violation(
    "CO-TAKE-01",
    1,
    "The claim does not exclude others: two nodes that get copies of a handoff both consume the job.",
    lua={**LOOSE, "own": ADDED, "may_take": "return owner == expected or expected ~= ''"},
)
violation(
    "CO-TAKE-01",
    2,
    "Every copy is a takeover: ownership wanders from node to node.",
    lua={"may_take": "return owner == expected or expected ~= ''"},
)


@violates("CO-TAKE-02", 1, "The ACK is sent on receipt, subscription follows.")
class AckThenSubscribe(JobHandoffSubscriber):
    def order(self) -> Sequence[Callable[[Message, Claim], Awaitable[None]]]:
        return (self.acknowledge, self.subscribe)


@violates("CO-TAKE-03", 1, "No ACK is sent; the store update is meant to suffice.")
class NoAck(JobHandoffSubscriber):
    async def acknowledge(self, message: Message, claim: Claim) -> None:
        pass


@violates("CO-TAKE-03", 2, "newOwner holds the previous owner's id.")
class NamesTheFormer(JobHandoffSubscriber):
    def ack_payload(self, claim: Claim) -> Payload:
        return {**super().ack_payload(claim), "newOwner": claim.former}


@violates("CO-TAKE-03", 3, "The topic carries the new owner's id.")
class OwnTopic(JobHandoffSubscriber):
    def ack_to(self, message: Message, claim: Claim) -> str:  # noqa: ARG002  # that is the violation
        return self.node.id


violation("CO-TAKE-04", 1, "The job is added to the new list and not removed from the old one.", lua={"own": ADDED})
violation(
    "CO-TAKE-04",
    2,
    "The job record keeps the departed node as owner; the leader re-publishes the jobs once it counts as dead.",
    lua={
        **LOOSE,
        "own": """
write('SADD', owner_key(node), id)
write('SADD', limits.store .. 'owners', node)
write('HSETNX', job_key(id), 'ownerNode', node)
return write('HINCRBY', job_key(id), 'ownerEpoch', 1)
""",
    },
)


@violates("CO-TAKE-05", 1, "Messages without fromNodeId or executionId are rejected.")
class WantsMore(JobHandoffSubscriber):
    async def on_handoff(self, entry: Entry) -> None:
        if entry.message and entry.message.text("fromNodeId") and entry.message.history_id:
            await super().on_handoff(entry)


@violates(
    "CO-TAKE-05",
    2,
    "fromNodeId is the leader's id in crash handoffs, so the compare with the previous owner fails.",
)
class FromTheLeader(OrphanJobDetector):
    def payload(self, orphan: Orphan) -> Payload:
        return {**super().payload(orphan), "fromNodeId": self.node.id}


@violates("CO-TAKE-06", 1, "One survivor reads the whole batch at once.")
class WholeBatch(Transport):
    def read_count(self, kind: str) -> int:
        return 1000 if kind == "handoff" else super().read_count(kind)


@violates("CO-TAKE-06", 2, "Only the leader consumes job.handoff.")
class LeaderTakesAll(JobHandoffSubscriber):
    def enabled(self) -> bool:
        return super().enabled() and self.node.lease.is_leader()


@violates("CO-TAKE-07", 1, "The crash path claims the job silently.")
class SilentAfterACrash(JobHandoffSubscriber):
    async def acknowledge(self, message: Message, claim: Claim) -> None:
        if message.text("reason") != NODE_CRASH:
            await super().acknowledge(message, claim)
