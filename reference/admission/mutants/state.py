"""Violations of the data placement rows."""

from holdfast.reference.admission.mutants.registry import violates
from holdfast.reference.admission.recovery import Recovery
from holdfast.reference.admission.redislink import Call
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Status, Verdict


@violates("AD-STATE-01", 2, "Each node keeps its own queue, so status on node B is 404.")
class OwnQueue(Store):
    mine: frozenset[str] = frozenset()

    async def decide(self, facts: Record) -> Verdict:
        self.mine |= {facts["characterId"]}
        return await super().decide(facts)

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        if character_id not in self.mine:
            return {"state": "absent"}
        return await super().status(user_id, character_id, instance_id)


@violates("AD-STATE-02", 1, "Server deletes its key prefix at start-up.")
class CleanSlate(Recovery):
    async def on_connect(self, call: Call) -> None:
        if self.node.link.connections == 0:
            for name in await call("KEYS", f"{self.node.settings.prefix}*"):
                await call("DEL", name)
        await super().on_connect(call)
