"""The results of campaigns as one document, `load.json`: what was asked, what was seen, what was decided and why."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.load.campaign import Campaign, Numbers
from holdfast.load.fold import Folded
from holdfast.load.judge import FaultWindow, Judgement, phases
from holdfast.load.latency import Latencies
from holdfast.spec.verdict import Verdict, exit_code

SCHEMA = 1
# Where a percentile curve is read: dense at its end, which is drawn on a logarithmic axis.
CURVE = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)


@dataclass(frozen=True)
class Told:
    """One campaign that was run."""

    campaign: Campaign
    numbers: Numbers
    folded: Folded
    windows: Sequence[FaultWindow]
    judgement: Judgement
    wall_s: float

    def document(self) -> dict[str, Any]:
        last = max((second for _, second in self.folded.seconds), default=-1)
        spans = phases(self.windows, last)
        return {
            "id": self.campaign.id,
            "title": self.campaign.title,
            "story": self.campaign.story,
            "headline": self.campaign.headline,
            "verdict": str(self.judgement.verdict),
            "reason": self.judgement.reason,
            "wall_s": round(self.wall_s, 3),
            "seconds": round(self.numbers.arrivals.seconds, 3),
            "arrivals": len(self.numbers.due),
            "parameters": self.numbers.parameters(),
            "findings": [{**asdict(each), "verdict": str(each.verdict)} for each in self.judgement.findings],
            "doubts": list(self.judgement.doubts),
            "operations": {name: self._operation(name, spans) for name in self.folded.names},
            "series": [self._second(second) for second in range(max([last, *self.folded.ends]) + 1)],
            "faults": [asdict(window) | {"receipts": list(window.receipts)} for window in self.windows],
            "generator": self._generator(),
            "history": len(self.folded.operations),
        }

    def _operation(self, name: str, spans: Mapping[str, list[int]]) -> dict[str, Any]:
        due, sent = self.folded.latencies(name), self.folded.latencies(name, sent=True)
        split = {phase: self.folded.latencies(name, only=only) for phase, only in spans.items() if phase != "all"}
        return {
            "count": len(due),
            "outcomes": dict(self.folded.outcomes(name).most_common()),
            "from_due": due.summary(),
            "from_sent": sent.summary(),
            "locust": self.folded.locust.get(name, {}),
            "phases": {phase: {"count": len(each), **each.summary()} for phase, each in split.items()},
            "curve": [[quantile, round(due.at(quantile), 6)] for quantile in CURVE],
        }

    def _second(self, second: int) -> dict[str, Any]:
        slots = {name: self.folded.seconds.get((name, second)) for name in self.folded.names}
        return {
            "second": second,
            "ended": self.folded.ends[second],
            "asked": round(self.numbers.arrivals.rate_at(second + 0.5), 3),
            "operations": {
                name: {
                    **_quick(Latencies.merged((text, longest) for text, longest in slot.from_due)),
                    "outcomes": dict(slot.outcomes),
                }
                for name, slot in slots.items()
                if slot
            },
        }

    def _generator(self) -> dict[str, Any]:
        folded = self.folded
        return {
            "workers": folded.expected,
            **asdict(folded.counts),
            "cpu": round(max((worker.cpu for worker in folded.workers.values()), default=0.0), 3),
            "run_queue": round(max((worker.queue for worker in folded.workers.values()), default=0.0), 3),
            "rss_mb": [_range(worker.rss_mb) for _, worker in sorted(folded.workers.items())],
        }


def _quick(latencies: Latencies) -> dict[str, float]:
    wanted = ("p50", "p95", "p99", "max")
    return {"count": len(latencies), **{name: latencies.summary()[name] for name in wanted}}


def _range(values: Sequence[float]) -> list[float]:
    """Returns the first, the greatest and the last of them: flat memory shows as three like numbers."""
    return [round(each, 1) for each in (values[0], max(values), values[-1])] if values else []


def document(told: Sequence[Told], identity: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `load.json`; `identity` says which target, when and how."""
    campaigns = [each.document() for each in told]
    return {
        "schema": SCHEMA,
        **identity,
        "exit": exit_code(Verdict(each["verdict"]) for each in campaigns),
        "campaigns": campaigns,
    }
