"""Settings of API and worker, read from the environment; the secret is nowhere else. Times are seconds.

Fields without a variable are constants of this implementation.
"""

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from holdfast.reference.shared import settings as read
from holdfast.reference.shared.settings import BadSetting, read_settings, setting

Network = IPv4Network | IPv6Network
LAN = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8,::1/128"
DAY = 24 * 3600.0


@dataclass(frozen=True)
class Token:
    """A credential that the API knows, and what its holder may do."""

    text: str
    scopes: frozenset[str]
    user: str = ""


def scopes_of(words: Sequence[str]) -> frozenset[str]:
    return frozenset(scope for word in words if (scope := word.strip().lower()))


def tokens(text: str) -> tuple[Token, ...]:
    try:
        given = json.loads(text)
        return tuple(Token(each["token"], scopes_of(each["scopes"]), each.get("user", "")) for each in given)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError('must be a JSON list of {"token": …, "scopes": […], "user": …}') from None


def networks(text: str) -> tuple[Network, ...]:
    """Reads addresses and networks, parted by commas."""
    try:
        return tuple(ip_network(word.strip(), strict=False) for word in text.split(",") if word.strip())
    except ValueError:
        raise ValueError("must be addresses or networks such as 10.0.0.0/8, parted by commas") from None


def slots(text: str) -> tuple[int, ...]:
    """Reads tuner slots: numbers and ranges (`0-3`, `0..3`), parted by commas."""
    found: dict[int, None] = {}
    for word in text.split(","):
        first = re.fullmatch(r"\s*(\d{1,4})(?:(?:-|\.\.)(\d{1,4}))?\s*", word)
        if first is None:
            raise ValueError("must be tuner slots such as 0,1 or 0-3")
        found.update(dict.fromkeys(range(int(first[1]), int(first[2] or first[1]) + 1)))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Settings:
    listen: str = setting("127.0.0.1:8088", read.address, env="XG2G_LISTEN")
    metrics_listen: str = setting("", read.address, env="XG2G_METRICS_LISTEN")
    redis_url: str = setting("redis://127.0.0.1:6379/0", read.redis_url, env="XG2G_REDIS_URL")
    api_tokens: tuple[Token, ...] = setting((), tokens, env="XG2G_API_TOKENS")
    api_token: str = setting("", env="XG2G_API_TOKEN")
    api_token_scopes: str = setting("", env="XG2G_API_TOKEN_SCOPES")
    api_leases: bool = setting(True, read.truth, env="XG2G_V3_API_LEASES")
    flag_removed: bool = setting(False, read.truth, env="XG2G_V3_FLAG_REMOVED")
    idem_secret: str = setting("", env="XG2G_IDEM_SECRET")
    idem_secret_previous: str = setting("", env="XG2G_IDEM_SECRET_PREVIOUS")
    trusted_proxies: tuple[Network, ...] = setting((), networks, env="XG2G_TRUSTED_PROXIES")
    lan_allowed: tuple[Network, ...] = setting(networks(LAN), networks, env="XG2G_LAN_ALLOWED_CIDRS")
    lan_guard: bool = setting(True, read.truth, env="XG2G_LAN_GUARD")
    tuner_slots: tuple[int, ...] = setting((), slots, env="XG2G_TUNER_SLOTS")
    lease_ttl: float = setting(30.0, read.duration, env="XG2G_LEASE_TTL")
    renew_every: float = setting(10.0, read.duration, env="XG2G_LEASE_RENEW_EVERY")
    worker_id: str = setting("", env="XG2G_WORKER_ID")
    startup_flush: bool = setting(True, read.truth, env="XG2G_WORKER_STARTUP_FLUSH")

    profiles: tuple[str, ...] = setting(
        ("universal", "high", "low", "dvr", "copy", "repair", "safari", "mobile"),
    )
    body_max_bytes: int = setting(1_048_576)
    retry_after: int = setting(1)
    session_ttl: float = setting(DAY)
    idem_ttl: float = setting(DAY)
    bus_length: int = setting(10_000)
    store_timeout: float = setting(4.0)
    release_timeout: float = setting(5.0)
    pipeline_start_delay: float = setting(0.05)
    pipeline_stop_timeout: float = setting(5.0)
    stop_poll: float = setting(0.2)
    worker_beat: float = setting(1.0)
    worker_life: float = setting(5.0)
    drain_timeout: float = setting(8.0)

    @property
    def phase1(self) -> bool:
        """Whether the API takes the service lease itself (section 4); once the flag is removed nobody reads it."""
        return self.api_leases and not self.flag_removed

    @property
    def known_tokens(self) -> tuple[Token, ...]:
        one = (Token(self.api_token, scopes_of(self.api_token_scopes.split(","))),) if self.api_token else ()
        return (*self.api_tokens, *one)

    @property
    def node(self) -> str:
        return self.worker_id or f"{socket.gethostname()}-{os.getpid()}"


def settings_from(environment: Mapping[str, str], argv: Sequence[str] = ()) -> Settings:
    """Returns the settings; an empty value means the default, as an unset one does. Raises BadSetting."""
    settings = read_settings(Settings, environment, argv)
    if settings.renew_every >= settings.lease_ttl:
        raise BadSetting("XG2G_LEASE_RENEW_EVERY must be shorter than XG2G_LEASE_TTL, or every lease runs out.")
    return settings
