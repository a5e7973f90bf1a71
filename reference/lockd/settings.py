"""What a node is told: flags, or their twins in the environment (`--self`, `LOCKD_SELF`).

The three times are no knobs of the spec: tests shorten them through the environment, and no flag does.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from holdfast.reference.lockd.endpoints import normal_endpoint


class BadSetting(Exception):  # noqa: N818  # named for what is wrong
    """A value that no node can run with."""


def _flag(text: str) -> bool:
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in values:
        raise ValueError("must be true or false")
    return values[text.lower()]


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)?", text)
    value = float(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[found[2] or "s"] if found else 0.0
    if not 0 < value < 1e6:
        raise ValueError("must be a time above 0, such as 15s")
    return value


def _endpoint(text: str) -> str:
    found = normal_endpoint(text)
    if found is None:
        raise ValueError("must be an http(s) URL without user, query and fragment")
    return found


def _endpoints(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_endpoint(each) for each in text.split(",") if each.strip()))


def _address(text: str) -> str:
    if not re.fullmatch(r".*:\d{1,5}", text) or int(text.rpartition(":")[2]) > 65535:
        raise ValueError("must look like 127.0.0.1:9341")
    return text


def _store(text: str) -> str:
    if text not in {"mem://", "memory://"} and not re.fullmatch(r"sqlite://.+", text):
        raise ValueError("must be mem:// or sqlite:///path/to/file")
    return text


def _setting(name: str, default: Any, read: Callable[[str], Any] = str, env: str = "") -> Any:
    twin = env or "LOCKD_" + name.upper().replace("-", "_")
    return field(default=default, metadata={"flag": "" if env else f"--{name}", "env": twin, "read": read})


@dataclass(frozen=True, kw_only=True)
class Settings:
    listen: str = _setting("listen", "127.0.0.1:9341", _address)
    given_self: str = _setting("self", "", _endpoint)
    join: tuple[str, ...] = _setting("join", (), _endpoints)
    bundle: str = _setting("bundle", "")
    tc_client_bundle: str = _setting("tc-client-bundle", "")
    tc_trust_dir: str = _setting("tc-trust-dir", "")
    tc_allow_default_ca: bool = _setting("tc-allow-default-ca", False, _flag)
    tc_disable_auth: bool = _setting("tc-disable-auth", False, _flag)
    disable_mtls: bool = _setting("disable-mtls", False, _flag)
    store: str = _setting("store", "mem://", _store)
    peer_call_timeout: float = _setting("tc-fanout-timeout", 5.0, _seconds)
    leader_ttl: float = _setting("", 15.0, _seconds, env="HOLDFAST_LEADER_TTL")
    rm_register_period: float = _setting("", 30.0, _seconds, env="HOLDFAST_RM_REGISTER_PERIOD")
    fault_file: str = _setting("", "", env="HOLDFAST_FAULT_FILE")
    violate: str = _setting("violate", "", env="")

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
    """Flags win over the environment; an empty value means the default, as an unset one does."""
    given = dict(_flags(argv))
    values: dict[str, Any] = {}
    for each in fields(Settings):
        flag, twin = each.metadata["flag"], each.metadata["env"]
        text = given.pop(flag, environment.get(twin, "")) if flag else environment.get(twin, "")
        if text:
            values[each.name] = _read(flag or twin, text, each.metadata["read"])
    if given:
        raise BadSetting(f"Unknown argument {next(iter(given))!r}; see the settings of the node for those it takes.")
    return Settings(**values)


def _flags(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """`--name value` and `--name=value`; a flag without a value switches on."""
    words = list(argv)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("--"):
            raise BadSetting(f"Unknown argument {name!r}; flags begin with two dashes.")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        yield name, value


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise BadSetting(f"{name} {text!r} {error}; change it where the node is started.") from None
