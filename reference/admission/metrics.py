"""The ten metric families (spec 4).

Counters and histograms count what this node did; a reader adds them up over the nodes. Gauges are values of the whole
cluster, read from Redis at each scrape: a gauge kept in the process would be wrong once another node ends a session.
"""

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from holdfast.reference.admission.verdicts import InstanceGauges
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

OUTCOMES = ("success", "failed", "queued", "timeout", "throttled")
GAUGE_SECONDS = 0.25
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10)
WAIT_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)


class Metrics:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.registry = CollectorRegistry()
        self.attempts = Counter("connection_attempt_total", "Attempts by outcome.", ["reason"], registry=self.registry)
        self.reconnects = self._counter("reconnection_attempt_total", "Presented reconnection tokens.")
        self.resumed = self._counter("reconnection_success_total", "Resumed sessions.")
        self.blocked = self._counter("rate_limit_block_total", "Attempts refused by the limiter.")
        self.mismatches = self._counter("version_mismatch_total", "Attempts with a wrong build.")
        self.active = self._gauge("session_active_current", "Sessions that hold a slot.")
        self.depth = self._gauge("queue_depth_current", "Waiting entries.")
        self.peak = self._gauge("queue_depth_peak", "Greatest length of the queue.")
        self.wait = self._histogram("queue_wait_seconds", "Wait of promoted characters.", WAIT_BUCKETS)
        self.latency = self._histogram(
            "admission_latency_seconds", "Time of admissions that were not queued.", LATENCY_BUCKETS
        )
        self.export_from_the_start()

    def export_from_the_start(self) -> None:
        """Exports every label at 0, because a rate over a fresh node needs the value before the first event."""
        for outcome in OUTCOMES:
            self.attempts.labels(outcome)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, ["instance_id"], registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def count_attempt(self, outcome: str) -> None:
        self.attempts.labels(outcome).inc()

    def count_presentation(self) -> None:
        self.reconnects.inc()

    def count_resumed(self) -> None:
        self.resumed.inc()

    def observe_wait(self, seconds: float) -> None:
        self.wait.observe(seconds)

    def observe_latency(self, seconds: float) -> None:
        self.latency.observe(seconds)

    def set_gauges(self, instances: list[InstanceGauges]) -> None:
        for each in instances:
            self.active.labels(each["instanceId"]).set(each["active"])
            self.depth.labels(each["instanceId"]).set(each["depth"])
            self.peak.labels(each["instanceId"]).set(each["peak"])

    async def scrape(self) -> bytes:
        """Returns the metrics. Gauges keep their last values when Redis does not answer at once."""
        try:
            async with asyncio.timeout(GAUGE_SECONDS):
                self.set_gauges(await self.node.store.gauges())
        except (RedisAway, TimeoutError):
            pass
        return self.render()

    def render(self) -> bytes:
        return generate_latest(self.registry)
