"""Settings of a node, read from its environment. Defaults are the spec's own values; all times are seconds."""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.reference.shared import settings as read
from holdfast.reference.shared.settings import BadSetting, read_settings, setting


def _sink(text: str) -> str:
    url = urlsplit(text)
    if url.scheme != "tcp" or not url.hostname or not url.port:
        raise ValueError("must look like tcp://host:port")
    return text


@dataclass(frozen=True, kw_only=True)
class Settings:
    current_client_build: str = setting("dev-build", env="CURRENT_CLIENT_BUILD")
    attempt_deadline: float = setting(10.0, read.positive, env="CONNECTION_TIMEOUT_SECONDS")
    grace: float = setting(60.0, read.positive, env="CONNECTION_GRACE_SECONDS")
    token_ttl: float = setting(60.0, read.positive, env="RECONNECTION_TOKEN_TTL")
    queue_cap: int = setting(1000, read.count, env="MAX_QUEUE_LENGTH")
    rate_failures: int = setting(5, read.count, env="CONNECTION_RATE_LIMIT")
    rate_window: float = setting(60.0, read.positive, env="CONNECTION_RATE_WINDOW_SECONDS")
    rate_lock: float = setting(60.0, read.positive, env="CONNECTION_RATE_LOCK_SECONDS")
    default_capacity: int = setting(100, read.count, env="MAX_ACTIVE_SESSIONS")
    heartbeat_interval: float = setting(30.0, read.positive, env="HEARTBEAT_INTERVAL_SECONDS")
    janitor_interval: float = setting(30.0, read.positive, env="JANITOR_INTERVAL_SECONDS")
    replacement_ttl: float = setting(60.0, read.positive, env="REPLACEMENT_TOKEN_TTL_SECONDS")
    poll_interval: float = setting(5.0, read.positive, env="QUEUE_POLL_SECONDS")
    promoter_tick: float = setting(0.5, read.positive, env="PROMOTER_TICK_SECONDS")
    suspicious_token_failures: int = setting(3, read.count, env="SUSPICIOUS_TOKEN_FAILURES")
    suspicious_mismatches: int = setting(2, read.count, env="SUSPICIOUS_MISMATCHES")
    suspicious_window: float = setting(60.0, read.positive, env="SUSPICIOUS_WINDOW_SECONDS")
    drain: bool = setting(False, read.truth, env="DRAIN_MODE_ENABLED")
    maintenance: bool = setting(False, read.truth, env="MAINTENANCE_MODE_ENABLED")
    push: bool = setting(True, read.truth, env="PUSH_ENABLED")
    redis_url: str = setting("redis://localhost:6379", read.redis_url, env="REDIS_URL")
    host: str = setting("127.0.0.1", env="HOST")
    port: int = setting(3000, read.port, env="PORT")
    tls_cert_file: str = setting("", env="TLS_CERT_FILE")
    tls_key_file: str = setting("", env="TLS_KEY_FILE")
    tls_port: int = setting(0, read.port, env="TLS_PORT")
    node_name: str = setting("", env="NODE_NAME")
    node_env: str = setting("development", env="NODE_ENV")
    auth_secret: str = setting("holdfast", env="AUTH_SECRET")
    admin_token: str = setting("holdfast-admin", env="ADMIN_TOKEN")
    clock_offset: float = setting(0.0, read.any_number, env="CLOCK_OFFSET_SECONDS")
    database_url: str = setting("", env="DATABASE_URL")
    audit_sink: str = setting("", _sink, env="AUDIT_SINK")

    @property
    def prefix(self) -> str:
        return "prod:" if self.node_env == "production" else "dev:"

    @property
    def node(self) -> str:
        return self.node_name or f"{socket.gethostname()}-{os.getpid()}"

    @property
    def tls(self) -> bool:
        return bool(self.tls_port)


def settings_from(environment: Mapping[str, str], argv: Sequence[str] = ()) -> Settings:
    """Returns the settings; an empty value means the default, as an unset one does. Raises BadSetting."""
    settings = read_settings(Settings, environment, argv)
    if settings.tls and not (settings.tls_cert_file and settings.tls_key_file):
        raise BadSetting("TLS_PORT needs TLS_CERT_FILE and TLS_KEY_FILE; set both or leave TLS_PORT out.")
    return settings
