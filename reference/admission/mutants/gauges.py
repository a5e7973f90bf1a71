"""Violations of the row about gauges."""

from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import InstanceGauges, Record
from holdfast.reference.shared.redislink import Call


@violates("AD-OBS-07", 1, "session_active_current is only ever incremented.")
class OnlyUp(Metrics):
    def observe_latency(self, seconds: float) -> None:
        super().observe_latency(seconds)
        self.active.labels("all").inc()

    def observe_wait(self, seconds: float) -> None:
        super().observe_wait(seconds)
        self.active.labels("all").inc()

    def set_gauges(self, instances: list[InstanceGauges]) -> None:
        super().set_gauges([{**each, "active": 0} for each in instances])


violation(
    "AD-OBS-07",
    2,
    "queue_depth_current is set on enqueue only.",
    lua={
        "note_peak": """
local peak = math.max(peak_of(instanceId), depth)
write('HSET', key('queue:stats', instanceId), 'peak', peak, 'depth', depth)""",
        "gauges_of": """
local depth = tonumber(redis.call('HGET', key('queue:stats', instanceId), 'depth') or 0)
return {instanceId = instanceId, active = active_count(instanceId), depth = depth, peak = peak_of(instanceId)}""",
    },
)

violation(
    "AD-OBS-07",
    3,
    "queue_depth_peak mirrors the current depth.",
    lua={"peak_of": "return depth_of(instanceId)"},
)

violation(
    "AD-OBS-07",
    4,
    "The peak is taken at scrape time and misses short spikes.",
    lua={
        "note_peak": "",
        "peak_of": """
local stats = key('queue:stats', instanceId)
local peak = math.max(tonumber(redis.call('HGET', stats, 'peak') or 0), depth_of(instanceId))
write('HSET', stats, 'peak', peak)
return peak""",
    },
)


@violates("AD-OBS-07", 5, "An in-process gauge drifts when another node ends the session.")
class OwnCount(Store):
    count = 0

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Record:
        answer: Record = await super().run(name, facts, call)
        match name, answer:
            case "decide", {"outcome": "success", **rest} if not rest.keys() & {"reconnected", "replaced"}:
                self.count += 1
            case "promote", {"promoted": True}:
                self.count += 1
            case "leave", {"found": True, **rest} if "foreign" not in rest:
                self.count -= 1
            case "reap", {"ended": ended}:
                self.count -= len(ended)
        return answer

    async def gauges(self) -> list[InstanceGauges]:
        found = await super().gauges()
        for each in found:
            each["active"] = 0
        return [*found, {"instanceId": "all", "active": self.count, "depth": 0, "peak": 0}]
