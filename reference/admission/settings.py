"""What a node is told by its environment. Defaults are the spec's own values; all times are seconds."""

import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit


class BadSetting(Exception):  # noqa: N818  # named for what is wrong
    """The environment has a value that no node can run with."""


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError("must be a number above 0")
    return value


def _any_number(text: str) -> float:
    value = float(text)
    if not -1e9 < value < 1e9:
        raise ValueError("must be a number")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise ValueError("must be a port number")
    return value


def _flag(text: str) -> bool:
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in values:
        raise ValueError("must be true or false")
    return values[text.lower()]


def _redis_url(text: str) -> str:
    if not re.match(r"redis://[^/]+", text):
        raise ValueError("must look like redis://host:port")
    _ = urlsplit(text).port  # raises ValueError for a port that is none
    return text


def _sink(text: str) -> str:
    url = urlsplit(text)
    if url.scheme != "tcp" or not url.hostname or not url.port:
        raise ValueError("must look like tcp://host:port")
    return text


def _setting(name: str, default: Any, read: Callable[[str], Any] = str) -> Any:
    return field(default=default, metadata={"name": name, "read": read})


@dataclass(frozen=True, kw_only=True)
class Settings:
    current_client_build: str = _setting("CURRENT_CLIENT_BUILD", "dev-build")
    attempt_deadline: float = _setting("CONNECTION_TIMEOUT_SECONDS", 10.0, _positive)
    grace: float = _setting("CONNECTION_GRACE_SECONDS", 60.0, _positive)
    token_ttl: float = _setting("RECONNECTION_TOKEN_TTL", 60.0, _positive)
    queue_cap: int = _setting("MAX_QUEUE_LENGTH", 1000, _count)
    rate_failures: int = _setting("CONNECTION_RATE_LIMIT", 5, _count)
    rate_window: float = _setting("CONNECTION_RATE_WINDOW_SECONDS", 60.0, _positive)
    rate_lock: float = _setting("CONNECTION_RATE_LOCK_SECONDS", 60.0, _positive)
    default_capacity: int = _setting("MAX_ACTIVE_SESSIONS", 100, _count)
    heartbeat_interval: float = _setting("HEARTBEAT_INTERVAL_SECONDS", 30.0, _positive)
    janitor_interval: float = _setting("JANITOR_INTERVAL_SECONDS", 30.0, _positive)
    replacement_ttl: float = _setting("REPLACEMENT_TOKEN_TTL_SECONDS", 60.0, _positive)
    poll_interval: float = _setting("QUEUE_POLL_SECONDS", 5.0, _positive)
    promoter_tick: float = _setting("PROMOTER_TICK_SECONDS", 0.5, _positive)
    suspicious_token_failures: int = _setting("SUSPICIOUS_TOKEN_FAILURES", 3, _count)
    suspicious_mismatches: int = _setting("SUSPICIOUS_MISMATCHES", 2, _count)
    suspicious_window: float = _setting("SUSPICIOUS_WINDOW_SECONDS", 60.0, _positive)
    drain: bool = _setting("DRAIN_MODE_ENABLED", False, _flag)
    maintenance: bool = _setting("MAINTENANCE_MODE_ENABLED", False, _flag)
    push: bool = _setting("PUSH_ENABLED", True, _flag)
    redis_url: str = _setting("REDIS_URL", "redis://localhost:6379", _redis_url)
    host: str = _setting("HOST", "127.0.0.1")
    port: int = _setting("PORT", 3000, _port)
    tls_cert_file: str = _setting("TLS_CERT_FILE", "")
    tls_key_file: str = _setting("TLS_KEY_FILE", "")
    tls_port: int = _setting("TLS_PORT", 0, _port)
    node_name: str = _setting("NODE_NAME", "")
    node_env: str = _setting("NODE_ENV", "development")
    auth_secret: str = _setting("AUTH_SECRET", "holdfast")
    admin_token: str = _setting("ADMIN_TOKEN", "holdfast-admin")
    clock_offset: float = _setting("CLOCK_OFFSET_SECONDS", 0.0, _any_number)
    database_url: str = _setting("DATABASE_URL", "")
    audit_sink: str = _setting("AUDIT_SINK", "", _sink)

    @property
    def prefix(self) -> str:
        return "prod:" if self.node_env == "production" else "dev:"

    @property
    def node(self) -> str:
        return self.node_name or f"{socket.gethostname()}-{os.getpid()}"

    @property
    def tls(self) -> bool:
        return bool(self.tls_port)


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        problem = str(error) if str(error).startswith("must") else "must be a number"
        raise BadSetting(f"{name}={text!r} {problem}; change it in the environment of the node.") from None


def settings_from(environment: Mapping[str, str]) -> Settings:
    """An empty value means the default, as an unset one does."""
    given: dict[str, Any] = {}
    for each in fields(Settings):
        text = environment.get(each.metadata["name"], "")
        if text:
            given[each.name] = _read(each.metadata["name"], text, each.metadata["read"])
    settings = Settings(**given)
    if settings.tls and not (settings.tls_cert_file and settings.tls_key_file):
        raise BadSetting("TLS_PORT needs TLS_CERT_FILE and TLS_KEY_FILE; set both or leave TLS_PORT out.")
    return settings
