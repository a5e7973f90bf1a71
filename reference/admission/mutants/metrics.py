"""Violations of the rows about counters and histograms."""

from typing import cast

from prometheus_client import Gauge, Histogram

from holdfast.reference.admission.attempts import Attempts
from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.verdicts import Promoted, Verdict


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
