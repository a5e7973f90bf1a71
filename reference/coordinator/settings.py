"""Settings of a node: those of section 6, and what the document leaves open. Times are seconds; flags are milliseconds.

Fields without a flag are constants of this implementation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.reference.coordinator.names import profile
from holdfast.reference.shared import settings as read
from holdfast.reference.shared.settings import BadSetting, read_settings, setting


def milliseconds(text: str) -> float:
    return read.positive(text) / 1000


def topics(text: str) -> str:
    if text not in {"stream", "pubsub"}:
        raise ValueError("must be stream or pubsub")
    return text


@dataclass(frozen=True, kw_only=True)
class Settings:
    node_id: str = setting("", env="CO_NODE_ID", flag="--node-id")
    redis_url: str = setting("redis://127.0.0.1:6379/0", read.redis_url, env="CO_REDIS_URL", flag="--redis-url")
    listen: str = setting("", read.address, env="CO_LISTEN", flag="--listen")
    names: str = setting("seed", profile, env="CO_NAMES", flag="--names")
    topics: str = setting("stream", topics, env="CO_TOPICS", flag="--topics")

    lease: float = setting(30.0, milliseconds, env="CO_LEASE_MS", flag="--lease-ms")
    renew_interval: float = setting(10.0, milliseconds, env="CO_RENEW_MS", flag="--renew-ms")
    heartbeat_interval: float = setting(10.0, milliseconds, env="CO_HEARTBEAT_MS", flag="--heartbeat-ms")
    dead_node_timeout: float = setting(30.0, milliseconds, env="CO_DEAD_NODE_MS", flag="--dead-node-ms")
    handoff_ack_timeout: float = setting(5.0, milliseconds, env="CO_ACK_TIMEOUT_MS", flag="--ack-timeout-ms")
    handoff_max_retries: int = setting(3, read.count, env="CO_HANDOFF_MAX_RETRIES", flag="--handoff-max-retries")
    handoff_hard_timeout: float = setting(60.0, milliseconds, env="CO_HARD_TIMEOUT_MS", flag="--hard-timeout-ms")
    orphan_check_interval: float = setting(30.0, milliseconds, env="CO_ORPHAN_CHECK_MS", flag="--orphan-check-ms")
    orphan_wait: float = setting(30.0, milliseconds, env="CO_ORPHAN_WAIT_MS", flag="--orphan-wait-ms")
    rebalance: bool = setting(False, read.truth, env="CO_REBALANCE", flag="--rebalance")
    rebalance_ratio: float = setting(2.0, read.positive, env="CO_REBALANCE_RATIO", flag="--rebalance-ratio")

    dispatch_scan: float = setting(1.0, milliseconds, env="CO_DISPATCH_SCAN_MS", flag="--dispatch-scan-ms")
    schedule_scan: float = setting(1.0, milliseconds, env="CO_SCHEDULE_SCAN_MS", flag="--schedule-scan-ms")
    timeout_scan: float = setting(1.0, milliseconds, env="CO_TIMEOUT_SCAN_MS", flag="--timeout-scan-ms")
    elect_poll: float = setting(1.0, milliseconds, env="CO_ELECT_POLL_MS", flag="--elect-poll-ms")

    block: float = setting(0.2)
    events_per_read: int = setting(50)
    jobs_per_scan: int = setting(100)
    topic_length: int = setting(10_000)
    late_events: float = setting(1.0)
    patience: float = setting(15.0)

    def spoken(self) -> Mapping[str, float]:
        """Returns the settings under the names of section 6, in milliseconds."""
        return {
            "LeaderLeaseDuration": round(self.lease * 1000),
            "LeaderRenewInterval": round(self.renew_interval * 1000),
            "HeartbeatInterval": round(self.heartbeat_interval * 1000),
            "DeadNodeTimeout": round(self.dead_node_timeout * 1000),
            "HandoffAckTimeout": round(self.handoff_ack_timeout * 1000),
            "HandoffMaxRetries": self.handoff_max_retries,
            "HandoffHardTimeout": round(self.handoff_hard_timeout * 1000),
            "OrphanCheckInterval": round(self.orphan_check_interval * 1000),
        }


def settings_from(environment: Mapping[str, str], argv: Sequence[str] = ()) -> Settings:
    """Returns the settings; an empty value means the default, as an unset one does. Raises BadSetting."""
    settings = read_settings(Settings, environment, argv)
    if settings.renew_interval >= settings.lease:
        raise BadSetting("--renew-ms must be shorter than --lease-ms, else the leader loses its lock every time.")
    if settings.heartbeat_interval >= settings.dead_node_timeout:
        raise BadSetting("--heartbeat-ms must be shorter than --dead-node-ms, else every node is dead.")
    return settings
