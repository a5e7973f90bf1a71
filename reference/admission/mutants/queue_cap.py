"""Violations of the rows about the queue's cap and the cost of a poll in a full queue."""

import asyncio
from time import monotonic

from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Status

violation("AD-QUEUE-07", 1, "No cap is enforced.", lua={"queue_cap": "return nil"})

violation(
    "AD-QUEUE-07",
    2,
    "Refusal starts one entry early, at length 999.",
    settings=lambda given: {"queue_cap": given.queue_cap - 1},
)

violation(
    "AD-QUEUE-07",
    3,
    "CAPACITY_FULL is used instead of QUEUE_FULL.",
    lua={
        "queue_cap": """
if depth_of(facts.instanceId) >= limits.queueCap then
  return refuse(facts, 'CAPACITY_FULL', {message = 'The instance and its queue are full.'})
end"""
    },
)

violation(
    "AD-QUEUE-07",
    4,
    "A full flag is set and cleared only when the queue is empty.",
    lua={
        "queue_cap": """
local flag, depth = key('queue:full', facts.instanceId), depth_of(facts.instanceId)
if depth >= limits.queueCap then
  write('SET', flag, '1')
elseif depth == 0 then
  write('DEL', flag)
end
if redis.call('EXISTS', flag) == 1 then
  return refuse(facts, 'QUEUE_FULL')
end"""
    },
)


@violates("AD-QUEUE-09", 1, "The whole queue is fetched from Redis to find one position.")
class WholeQueue(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        queue = f"{self.node.settings.prefix}queue:pending:{instance_id}"
        members = await self.node.link.call("ZRANGE", queue, 0, -1)
        if found["state"] == "queued" and character_id.encode() in members:
            found["position"] = members.index(character_id.encode())
        return found


@violates("AD-QUEUE-09", 2, "Each poll waits for the next run of a position table refreshed every 200 ms.")
class PositionTable(Store):
    refresh = 0.2

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        await asyncio.sleep(self.refresh - monotonic() % self.refresh)
        return await super().status(user_id, character_id, instance_id)
