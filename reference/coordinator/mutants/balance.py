"""Violations of rebalancing (section 3, L3)."""

from collections.abc import Iterable

from holdfast.reference.coordinator.handoff import JobHandoffPublisher, JobHandoffSubscriber, Offer
from holdfast.reference.coordinator.messages import REBALANCE, Message
from holdfast.reference.coordinator.mutants.table import violates, violation
from holdfast.reference.coordinator.rebalancer import Rebalancer


@violates("CO-BALANCE-01", 1, "Load figures are published but never compared.")
class NeverCompared(Rebalancer):
    async def look(self) -> None:
        pass


@violates("CO-BALANCE-01", 2, "Any difference triggers handoffs.")
class AnyDifference(Rebalancer):
    def triggered(self, own: int, least: int) -> bool:
        return own > least


violation(
    "CO-BALANCE-01",
    3,
    "The threshold is 2.5x (or 3x) instead of 2x: 42 against 20 is left alone.",
    lambda s: {"rebalance_ratio": 1.25 * s.rebalance_ratio},
)
violation(
    "CO-BALANCE-01",
    4,
    "The threshold is 1.5x instead of 2x: 38 against 20 is rebalanced.",
    lambda s: {"rebalance_ratio": 0.75 * s.rebalance_ratio},
)


@violates("CO-BALANCE-01", 5, "The last known load of a dead node is kept in the table.")
class RemembersTheDead(Rebalancer):
    def peers(self) -> dict[str, int]:
        known = self.node.health.peers.items()
        return {name: peer.job_count for name, peer in known if peer.status == "Active" and self.is_fresh(peer.heard)}


@violates("CO-BALANCE-01", 6, "A draining peer counts as an idle target.")
class CountsTheDraining(Rebalancer):
    def peers(self) -> dict[str, int]:
        live = self.node.health.live_peers().items()
        return {name: peer.job_count for name, peer in live if self.is_fresh(peer.heard)}


@violates("CO-BALANCE-02", 1, "Hands off the full difference (80), swapping the imbalance.")
class FullDifference(Rebalancer):
    def amount(self, own: int, loads: Iterable[int]) -> int:
        return own - min(loads)


@violates("CO-BALANCE-02", 2, "Nodes react to each other's stale heartbeat and throw jobs back and forth.")
class BelievesOldFigures(Rebalancer):
    def is_fresh(self, heard: float) -> bool:  # noqa: ARG002  # that is the violation
        return True

    def interval(self) -> float:
        return 0.02 * super().interval()


@violates("CO-BALANCE-03", 1, "The sender keeps reading job.handoff and re-wins half of its jobs.")
class WinsThemBack(JobHandoffSubscriber):
    def enabled(self) -> bool:
        return True

    def is_own_offer(self, message: Message) -> bool:  # noqa: ARG002  # that is the violation
        return False


@violates("CO-BALANCE-03", 2, "Jobs are dropped from the registry on publication.")
class DroppedAtOnce(JobHandoffPublisher):
    async def publish(self, offer: Offer, attempt: int) -> None:
        await super().publish(offer, attempt)
        if offer.reason == REBALANCE:
            self.node.registry.drop(offer.job)
            await self.node.ownership.release(offer.job, "")
