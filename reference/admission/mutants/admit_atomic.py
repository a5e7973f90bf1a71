"""Violations of the row that wants all of an admission or nothing."""

import json

from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Verdict


@violates("AD-ADMIT-04", 1, "A pending session record is written first and forgotten on refusal.")
class PendingFirst(Store):
    async def decide(self, facts: Record) -> Verdict:
        record = f"{self.node.settings.prefix}session:data:{facts['newSessionId']}"
        if facts["kind"] == "admit":
            await self.node.link.call("SET", record, json.dumps({**facts, "state": "pending"}))
        verdict = await super().decide(facts)
        if verdict["outcome"] == "queued":
            await self.node.link.call("DEL", record)
        return verdict


@violates("AD-ADMIT-04", 2, "Record, marker and count are three separate writes.")
class ThreeWrites(Split):
    """The script still writes the record; marker and count follow."""

    record = f"""
local name = select(2, ...)
if not string.find(name, 'session:char:', 1, true) and not string.find(name, 'session:instance:', 1, true) then
  return redis.call(...)
end
{RECORD}"""
