"""Violations of the rows that want Redis time, whatever the clocks of the nodes say."""

from typing import ClassVar

from holdfast.reference.admission.mutants.rescripted import Lua, Rescripted
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.verdicts import Promoted, Record, Verdict


@violates("AD-QUEUE-03", 1, "The score is the node's wall clock sent as a script argument.")
class WallClockScore(Rescripted):
    lua: ClassVar[Lua] = {"enqueue_time": "return facts.wallMs * 1000", "enqueue_score": "return now"}

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"wallMs": self.wall_ms()})


@violates("AD-QUEUE-03", 2, "The promoting node subtracts the stored time from its own clock.")
class OwnClockWait(Promoter):
    async def promote_one(self, instance_id: str) -> Promoted:
        promoted = await super().promote_one(instance_id)
        if promoted["promoted"]:
            enqueued = promoted["at"] - promoted["waitMs"]
            promoted["waitMs"] = self.node.events.wall_clock() * 1000 - enqueued
        return promoted


@violates("AD-QUEUE-04", 1, "graceExpiresAt is compared with the node's wall clock.")
class WallClockGrace(Rescripted):
    lua: ClassVar[Lua] = {"resumable": "return session.state == 'active' or session.graceExpiresAt > facts.wallMs"}

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"wallMs": self.wall_ms()})


@violates("AD-QUEUE-04", 2, "lockedUntil is compared with the node's wall clock.")
class WallClockLock(Rescripted):
    lua: ClassVar[Lua] = {
        "lock_left": """
local left = (redis.call('GET', lock_key(facts)) or 0) - facts.wallMs
return left > 0 and left or nil"""
    }

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"wallMs": self.wall_ms()})


violation(
    "AD-QUEUE-04",
    3,
    "A plain timestamp puts the newcomer first after a step back.",
    lua={"enqueue_score": "return now"},
)
