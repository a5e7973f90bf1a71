"""Violations of the settings (section 6)."""

from holdfast.reference.coordinator.drain import Exit
from holdfast.reference.coordinator.handoff import JobHandoffPublisher
from holdfast.reference.coordinator.mutants.table import violates, violation

violation(
    "CO-CONF-01",
    1,
    "The heartbeat interval is a constant; the setting has no effect.",
    lambda s: {"heartbeat_interval": 10.0},  # noqa: ARG005  # whatever is set
)
violation(
    "CO-CONF-01",
    2,
    "Three times the heartbeat interval is used instead of DeadNodeTimeout.",
    lambda s: {"dead_node_timeout": 3 * s.heartbeat_interval},
)
violation(
    "CO-CONF-01",
    3,
    "The orphan check period is a constant 30 s, whatever is set.",
    lambda s: {"orphan_check_interval": 30.0},  # noqa: ARG005  # whatever is set
)
violation(
    "CO-CONF-01",
    4,
    "The orphan check is tied to the heartbeat interval.",
    lambda s: {"orphan_check_interval": s.heartbeat_interval},
)
violation(
    "CO-CONF-02",
    1,
    "The ACK timeout is a constant 5 s.",
    lambda s: {"handoff_ack_timeout": 5.0},  # noqa: ARG005  # whatever is set
)


@violates("CO-CONF-02", 2, "HandoffMaxRetries counts publications instead of retries (one too few).")
class CountsPublications(JobHandoffPublisher):
    def max_retries(self) -> int:
        return max(0, super().max_retries() - 1)


@violates("CO-CONF-02", 3, "The hard limit is checked only between phases.")
class BetweenPhases(Exit):
    def within(self, seconds: float) -> None:
        pass
