"""Who asks: clients that a trusted proxy names, by the names that the model has for them (section 6, LAN guard)."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.conformance.intents.lan import ALWAYS_INSIDE, NEVER_INSIDE, OTHER_HEADERS, PRIVATE, PUBLIC
from holdfast.conformance.intents.wire import forwarded

_LAN, _CHAIN, _ODD = "IN-LAN-01", "IN-LAN-02", "IN-LAN-03"


@dataclass(frozen=True)
class Client:
    """`lines` are the X-Forwarded-For of the request; `row` says whether it is let in."""

    lines: tuple[str, ...]
    inside: bool
    row: str
    also: tuple[tuple[str, str], ...] = ()

    @property
    def headers(self) -> Mapping[str, str]:
        return {**forwarded(*self.lines), **dict(self.also)} if self.also else forwarded(*self.lines)


CLIENTS: Mapping[str, Client] = {
    PUBLIC: Client((PUBLIC,), inside=False, row=_LAN),
    **{address: Client((address,), inside=True, row=_LAN) for address in PRIVATE},
    "outside behind a LAN": Client((f"192.168.1.5, {PUBLIC}",), inside=False, row=_CHAIN),
    "outside on a second line": Client(("192.168.1.5", PUBLIC), inside=False, row=_CHAIN),
    "inside behind outside": Client((f"{PUBLIC}, 192.168.1.5",), inside=True, row=_CHAIN),
    **{f"as '{line}'": Client((line,), inside=False, row=_ODD) for line in NEVER_INSIDE},
    **{f"as '{line}'": Client((line,), inside=True, row=_ODD) for line in ALWAYS_INSIDE},
    **{
        f"outside with {name}": Client((PUBLIC,), inside=False, row=_ODD, also=((name, value),))
        for name, value in OTHER_HEADERS.items()
    },
}
