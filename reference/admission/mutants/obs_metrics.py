"""Violations of the rows about metrics."""

from typing import cast

from prometheus_client import Gauge, Histogram

from holdfast.reference.admission.attempts import Attempts
from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.mutants.registry import violates, violation
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.redislink import Call
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import InstanceGauges, Promoted, Record, Verdict


@violates("AD-OBS-04", 3, "reconnection_attempt_total counts successes only.")
class GoodPresentationsCounted(Metrics):
    def count_presentation(self) -> None:
        """Counted when it has succeeded."""

    def count_resumed(self) -> None:
        super().count_presentation()
        super().count_resumed()


@violates("AD-OBS-04", 4, "reconnection_success_total rises with every presentation.")
class EveryPresentationASuccess(Metrics):
    def count_presentation(self) -> None:
        super().count_presentation()
        super().count_resumed()

    def count_resumed(self) -> None:
        """Counted when it was presented."""


@violates("AD-OBS-06", 1, "The counter has no reason label.")
class NoLabel(Metrics):
    def export_from_the_start(self) -> None:
        self.registry.unregister(self.attempts)
        self.attempts = self._counter("connection_attempt_total", "Attempts.")

    def count_attempt(self, outcome: str) -> None:  # noqa: ARG002  # the base class names it
        self.attempts.inc()


@violates("AD-OBS-06", 2, "Refusals carry the failure code as label value instead of 'failed'.")
class CodeAsLabel(Attempts):
    def outcome_label(self, verdict: Verdict) -> str:
        label = super().outcome_label(verdict)
        return verdict["reason"] if label == "failed" else label


@violates("AD-OBS-06", 3, "Queued attempts are counted only when promoted, as success.")
class CountedWhenPromoted(Metrics):
    def count_attempt(self, outcome: str) -> None:
        if outcome != "queued":
            super().count_attempt(outcome)

    def observe_wait(self, seconds: float) -> None:
        super().observe_wait(seconds)
        self.count_attempt("success")


@violates("AD-OBS-06", 4, "A promoted attempt is counted as queued and again as success.")
class CountedTwice(Promoter):
    def announce(self, instance_id: str, promoted: Promoted) -> None:
        super().announce(instance_id, promoted)
        self.node.metrics.count_attempt("success")


@violates("AD-OBS-06", 5, "Throttled attempts are not counted.")
class ThrottledUncounted(Metrics):
    def count_attempt(self, outcome: str) -> None:
        if outcome != "throttled":
            super().count_attempt(outcome)


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


@violates("AD-OBS-08", 1, "queue_wait_seconds is observed at enqueue with an estimate.")
class EstimatedWait(Metrics):
    def count_attempt(self, outcome: str) -> None:
        super().count_attempt(outcome)
        if outcome == "queued":
            super().observe_wait(self.node.settings.poll_interval)

    def observe_wait(self, seconds: float) -> None:
        """Observed at enqueue."""


@violates("AD-OBS-08", 2, "The wait is observed in milliseconds.")
class WaitInMilliseconds(Metrics):
    def observe_wait(self, seconds: float) -> None:
        super().observe_wait(seconds * 1000)


@violates("AD-OBS-08", 3, "Direct admissions are observed in queue_wait_seconds as 0.")
class NoWaitObserved(Metrics):
    def observe_latency(self, seconds: float) -> None:
        super().observe_latency(seconds)
        self.observe_wait(0)


@violates("AD-OBS-08", 4, "Promoted characters are observed in admission_latency_seconds with their whole wait.")
class WaitAsLatency(Metrics):
    def observe_wait(self, seconds: float) -> None:
        super().observe_wait(seconds)
        self.observe_latency(seconds)


@violates("AD-OBS-09", 1, "rate_limit_block_total counts once, when the lock is set.")
class LocksCounted(Attempts):
    def count_refusal(self, verdict: Verdict) -> None:
        if verdict["reason"] == "RATE_LIMITED":
            return
        super().count_refusal(verdict)
        if verdict.get("remaining") == 0:
            self.node.metrics.blocked.inc()


@violates("AD-OBS-09", 2, "Version mismatches are logged but have no metric.")
class NoMismatchMetric(Metrics):
    def export_from_the_start(self) -> None:
        super().export_from_the_start()
        self.registry.unregister(self.mismatches)


class LastValue(Gauge):
    def observe(self, amount: float) -> None:
        self.set(amount)


@violates("AD-OBS-10", 1, "Histograms are exported as gauges holding the last value.")
class LastValues(Metrics):
    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:  # noqa: ARG002  # a gauge has none
        return cast("Histogram", LastValue(name, text, registry=self.registry))


@violates("AD-OBS-10", 2, "A family appears only after its first use, so a rate over a fresh node has no data.")
class OnFirstUse(Metrics):
    def export_from_the_start(self) -> None:
        self.registry.unregister(self.attempts)

    def count_attempt(self, outcome: str) -> None:
        if not any(family.samples for family in self.attempts.collect()):
            self.registry.register(self.attempts)
        super().count_attempt(outcome)
