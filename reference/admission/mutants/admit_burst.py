"""Violations of the row about capacity and queue cap while many connect at once."""

from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.reference.admission.mutants.rescripted import Lua, Rescripted
from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.verdicts import Record, Verdict
from holdfast.reference.shared.redislink import Call

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

MINUTE = 60.0


@violates("AD-ADMIT-03", 1, "Capacity is read and the session written in a second round trip.")
class ReadThenWrite(Split):
    """Only what makes a session is written later; queue and limiter stay atomic."""

    record = f"""
if not string.find(select(2, ...), 'session:', 1, true) then
  return redis.call(...)
end
{RECORD}"""


@violates("AD-ADMIT-03", 2, "A lock inside the process guards the check, so each node lets in its own share.")
class LockInTheProcess(ReadThenWrite):
    mutex = True


@violates("AD-ADMIT-03", 3, "Nodes cache the capacity for a minute.")
class CachedCapacity(Rescripted):
    """A node that stores another capacity drops the cached one; the other nodes keep theirs."""

    lua: ClassVar[Lua] = {
        "may_enter": """
return active_count(facts.instanceId) < tonumber(facts.capacity or limits.defaultCapacity)
  and depth_of(facts.instanceId) == 0"""
    }

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.cache: dict[str, tuple[float, str | None]] = {}

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Any:
        answer = await super().run(name, facts, call)
        if name == "register_instance":
            self.cache.pop(facts["instanceId"], None)
        return answer

    async def decide(self, facts: Record) -> Verdict:
        return await super().decide(facts | {"capacity": await self.capacity(facts["instanceId"])})

    async def capacity(self, instance_id: str) -> str | None:
        until, capacity = self.cache.get(instance_id, (0.0, None))
        if monotonic() >= until:
            found = await self.node.link.call("GET", self.name("instance:capacity", instance_id))
            capacity = found and found.decode()
            self.cache[instance_id] = monotonic() + MINUTE, capacity
        return capacity


@violates("AD-ADMIT-03", 4, "The queue length is read in a separate command before the enqueue.")
class LengthReadBefore(Rescripted):
    lua: ClassVar[Lua] = {"queue_cap": "if facts.length >= limits.queueCap then return refuse(facts, 'QUEUE_FULL') end"}

    async def decide(self, facts: Record) -> Verdict:
        length = await self.node.link.call("ZCARD", self.name("queue:pending", facts["instanceId"]))
        return await super().decide(facts | {"length": length})
