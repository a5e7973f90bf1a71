"""Settings of a node: flags, or variables of the environment with the same names (`--self`, `LOCKD_SELF`).

The spec has no knobs for leader TTL and RM period, so there are no flags for them; tests shorten them through
variables.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.reference.lockd.endpoints import normal_endpoint
from holdfast.reference.shared import settings as read
from holdfast.reference.shared.settings import read_settings, setting


def _endpoint(text: str) -> str:
    found = normal_endpoint(text)
    if found is None:
        raise ValueError("must be an http(s) URL without user, query and fragment")
    return found


def _endpoints(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_endpoint(each) for each in text.split(",") if each.strip()))


def _store(text: str) -> str:
    if text not in {"mem://", "memory://"} and not re.fullmatch(r"sqlite://.+", text):
        raise ValueError("must be mem:// or sqlite:///path/to/file")
    return text


def _setting(name: str, default: Any, reader: Callable[[str], Any] = str) -> Any:
    return setting(default, reader, env="LOCKD_" + name.upper().replace("-", "_"), flag=f"--{name}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    listen: str = _setting("listen", "127.0.0.1:9341", read.address)
    given_self: str = _setting("self", "", _endpoint)
    join: tuple[str, ...] = _setting("join", (), _endpoints)
    bundle: str = _setting("bundle", "")
    tc_client_bundle: str = _setting("tc-client-bundle", "")
    tc_trust_dir: str = _setting("tc-trust-dir", "")
    tc_allow_default_ca: bool = _setting("tc-allow-default-ca", False, read.truth)
    tc_disable_auth: bool = _setting("tc-disable-auth", False, read.truth)
    disable_mtls: bool = _setting("disable-mtls", False, read.truth)
    store: str = _setting("store", "mem://", _store)
    peer_call_timeout: float = _setting("tc-fanout-timeout", 5.0, read.duration)
    leader_ttl: float = setting(15.0, read.duration, env="HOLDFAST_LEADER_TTL")
    rm_register_period: float = setting(30.0, read.duration, env="HOLDFAST_RM_REGISTER_PERIOD")
    fault_file: str = setting("", env="HOLDFAST_FAULT_FILE")

    @property
    def mtls(self) -> bool:
        return not self.disable_mtls

    @property
    def self_endpoint(self) -> str:
        return self.given_self or f"{'https' if self.mtls else 'http'}://{self.listen}"

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host or "127.0.0.1", int(port)


def settings_from(environment: Mapping[str, str], argv: Sequence[str] = ()) -> Settings:
    """Reads the settings: flags win over the environment, and an empty value means the default."""
    return read_settings(Settings, environment, argv)
