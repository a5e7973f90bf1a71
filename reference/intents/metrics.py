"""Prometheus metrics with the names of the public implementation, on a listener of their own."""

import functools
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from holdfast.reference.intents.settings import Settings


class Metrics:
    """`phase` is the label that tells the two modes of the API apart."""

    def __init__(self, settings: Settings) -> None:
        self.registry = CollectorRegistry()
        self.phase = "phase1" if settings.phase1 else "phase2"
        self.intents = self._counter("xg2g_v3_intents_total", "Intents by outcome.", ["type", "mode", "outcome"])
        self.replays = self._counter("xg2g_v3_idempotent_replay_total", "Replayed starts.", ["type"])
        self.published = self._counter("xg2g_v3_bus_publish_total", "Published events.", ["topic", "outcome"])
        self.tuner_busy = self._counter("xg2g_v3_tuner_busy_total", "Starts that found every slot taken.")
        self.rejections = self._counter(
            "xg2g_v3_capacity_rejections_total", "Starts that a worker rejected.", ["reason", "profile"]
        )
        self.lost = self._counter("v3_worker_lease_lost_total", "Sessions that lost a lease.")
        self.starts = self._counter(
            "xg2g_v3_session_starts_total", "Starts by result.", ["result", "reason_class", "profile"]
        )
        self.active = Gauge("xg2g_v3_sessions_active", "Sessions that this worker runs.", registry=self.registry)
        self.tuners = Gauge("xg2g_tuners_in_use", "Slots that this worker's sessions hold.", registry=self.registry)

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    @functools.cache  # noqa: B019 - one of these lives as long as its process, and has a handful of children
    def _child(self, counter: Counter, *labels: str) -> Counter:
        """Returns the counter with these labels; the library looks one up under a lock each time."""
        return counter.labels(*labels)

    def intent(self, type_: str, outcome: str) -> None:
        self._child(self.intents, type_, self.phase, outcome).inc()

    def accepted(self, type_: str, *, made: bool) -> None:
        self.intent(type_, "accepted" if made else "replay")
        if made:
            self._child(self.published, "session", "ok").inc()
        else:
            self._child(self.replays, type_).inc()

    def rejected(self, reason: str, profile: str) -> None:
        self.rejections.labels(reason, profile).inc()
        self.starts.labels("rejected", reason, profile).inc()
        if reason == "REJECTED_NO_TUNER":
            self.tuner_busy.inc()

    def started(self, profile: str) -> None:
        self.starts.labels("started", "R_NONE", profile).inc()

    def failed(self, reason: str, profile: str) -> None:
        self.starts.labels("failed", reason, profile).inc()

    def render(self) -> bytes:
        return generate_latest(self.registry)

    async def serve(self, request: web.BaseRequest) -> web.Response:
        if request.path != "/metrics":
            return web.Response(status=404)
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self.render(), headers=headers)


async def listen(address: str, runner: Any) -> None:
    """Opens the port that an address such as 127.0.0.1:8088 names."""
    host, _, port = address.rpartition(":")
    await web.TCPSite(runner, host, int(port), backlog=1024).start()
