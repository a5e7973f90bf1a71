"""How a setting of the spec reaches a node: by which variable or flag, to which roles, and how a duration is written.

Durations are seconds everywhere in Holdfast, as a decimal number. `unit` says how this target wants them: a value that
is a number of seconds is rewritten (`6` becomes `6000`, `6s` or `PT6S`), and any other value (a text, a placeholder, a
duration that the descriptor's author has written out as a default) goes to the node as it is.

One setting may reach different roles in different ways: `[settings] NAME` is then a list of ways, each with its
`roles`. A role that no way names does not get the setting at all.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

UNITS = ("seconds", "ms", "go", "iso")
_KEYS = {"env", "flag", "default", "unit", "roles"}


@dataclass(frozen=True)
class Setting:
    """One way of a setting into a node, and in `others` those for other roles. Nodes start with `default`, if any."""

    env: str | None = None
    flag: str | None = None
    default: str | None = None
    unit: str | None = None
    roles: tuple[str, ...] = ()
    others: tuple["Setting", ...] = ()

    def of(self, role: str) -> "Setting | None":
        """Returns the way to nodes of this role; None if they do not take the setting."""
        return next((way for way in self.ways() if not way.roles or role in way.roles), None)

    def ways(self) -> Iterator["Setting"]:
        yield self
        yield from self.others

    def written(self, value: str) -> str:
        """Returns the value as the target reads it."""
        return written(value, self.unit) if self.unit else value


def written(value: str, unit: str) -> str:
    """Returns a number of seconds in this unit; every other text as it is."""
    try:
        seconds = Decimal(value.strip())
    except InvalidOperation:
        return value
    if not seconds.is_finite():
        return value
    if unit == "seconds":
        return _plain(seconds)
    if unit == "ms":
        return str(int((seconds * 1000).to_integral_value()))
    sign, parts = ("-" if seconds < 0 else ""), _parts(abs(seconds))
    if unit == "go":
        return sign + _go(*parts)
    return f"{sign}PT{_joined(*parts, 'H', 'M', 'S')}"


def _parts(seconds: Decimal) -> tuple[int, int, Decimal]:
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return int(hours), int(minutes), rest


def _go(hours: int, minutes: int, seconds: Decimal) -> str:
    if not hours and not minutes and 0 < seconds < 1:
        return f"{_plain(seconds * 1000)}ms"
    return _joined(hours, minutes, seconds, "h", "m", "s")


def _joined(hours: int, minutes: int, seconds: Decimal, h: str, m: str, s: str) -> str:
    texts = [f"{hours}{h}" if hours else "", f"{minutes}{m}" if minutes else "", f"{_plain(seconds)}{s}"]
    return "".join(texts if seconds or not (hours or minutes) else texts[:2])


def _plain(number: Decimal) -> str:
    """Returns the number without an exponent and without zeros behind its last digit."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_setting(name: str, value: Any, roles: Collection[str]) -> Setting:
    """What a descriptor says under `[settings] NAME`; raises ValueError with the remedy."""
    ways = [_way(name, each, roles) for each in (value if isinstance(value, list) else [value])]
    if not ways:
        raise _unclear(name)
    taken: set[str] = set()
    for way in ways:
        mine = set(way.roles or roles)
        if twice := taken & mine:
            raise ValueError(f"[settings] {name}: two ways for the role {min(twice)}; give each way its own roles")
        taken |= mine
    first, *others = ways
    return Setting(first.env, first.flag, first.default, first.unit, first.roles, tuple(others))


def _way(name: str, value: Any, roles: Collection[str]) -> Setting:
    keys = value.keys() if isinstance(value, dict) else set[str]()
    if not keys & {"env", "flag"} or keys - _KEYS:
        raise _unclear(name)
    if (unit := value.get("unit")) not in (None, *UNITS):
        raise ValueError(f"[settings] {name}: unit {unit!r} is none of {', '.join(UNITS)}")
    mine = value.get("roles", [])
    if not isinstance(mine, list) or not all(isinstance(role, str) for role in mine):
        raise ValueError(f'[settings] {name}: roles: write a list, e.g. roles = ["{next(iter(roles), "node")}"]')
    if unknown := [role for role in mine if role not in roles]:
        raise ValueError(f"[settings] {name}: no node has the role {unknown[0]!r}; there are: {', '.join(roles)}")
    default = value.get("default")
    return Setting(value.get("env"), value.get("flag"), None if default is None else str(default), unit, tuple(mine))


def _unclear(name: str) -> ValueError:
    return ValueError(
        f'[settings] {name}: write {{ env = "VARIABLE" }} or {{ flag = "--option" }}, with default, unit or roles'
        " if needed; or a list of these, one for each group of roles"
    )
