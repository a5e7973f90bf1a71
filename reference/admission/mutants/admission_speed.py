"""Violations of the row about the speed of a direct admission."""

import asyncio
from time import monotonic

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Verdict


@violates("AD-TIME-06", 1, "Active sessions are counted by fetching every session record one by one.")
class CountedOneByOne(Store):
    async def decide(self, facts: Record) -> Verdict:
        prefix, call = self.node.settings.prefix, self.node.link.call
        for session_id in await call("SMEMBERS", f"{prefix}session:instance:{facts['instanceId']}"):
            await call("GET", f"{prefix}session:data:{session_id.decode()}")
        return await super().decide(facts)


@violates("AD-TIME-06", 2, "Attempts are handled by a loop that ticks every 2 s.")
class Ticking(Attempts):
    async def decide(self, attempt: Attempt) -> Verdict:
        tick = min(2.0, 0.75 * self.node.settings.attempt_deadline)  # a scaled deadline must not come first
        await asyncio.sleep(tick - monotonic() % tick)
        return await super().decide(attempt)
