"""What a target does without, as its descriptor says: one sentence, the same wherever a check meets it.

A row about something that the target declares it does not have is not applicable. A row that needs an administration
call which the target does not offer can't be observed; `blocked` is the one cause of all of them, so that a report
tells it once.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.check.finding import NotApplicable, NotObservable
from holdfast.conformance.shared.wire import Request

_WITHOUT = {
    "accounts": "characters that belong to users and can be suspended",
    "sockets": "sockets",
    "tls": "TLS of its own",
    "queue": "a waiting line",
    "cancel_replacement": "a call that cancels a replacement",
    "ws_reconnect": "reconnects in the WebSocket handshake",
    "push": "pushed positions",
}
# Administration calls that a target may not offer, each with the one name under which a run tells what it blocks.
_REGISTRATION = ("admin calls", "PUT /admin/instances/{id}, PUT /admin/characters/{id}")
_DRAIN = ("drain calls", "POST /admin/drain-mode/instance/{id}")


class Features:
    """The `[dialect]` section of a descriptor. What it does not mention is there, except what is optional."""

    def __init__(self, dialect: Mapping[str, Any]) -> None:
        self._dialect = dialect

    def get(self, name: str, default: Any = None) -> Any:
        return self._dialect.get(name, default)

    def has(self, name: str) -> bool:
        """Whether the target has what every target has unless it says otherwise."""
        return self._dialect.get(name, True) is not False

    def require(self, name: str) -> None:
        """Raises NotApplicable if the target declares that it does without."""
        if not self.has(name):
            raise NotApplicable(f"the target does without {_WITHOUT[name]} ([dialect] {name} = false)")

    def require_declared(self, name: str) -> None:
        """Raises NotApplicable unless the target declares this optional feature."""
        if not self._dialect.get(name):
            raise NotApplicable(f"the descriptor declares no {_WITHOUT[name]} ([dialect] {name})")

    @property
    def fixed_capacity(self) -> int | None:
        """How many sessions each instance takes, where the suite can't change it."""
        capacity: int | None = self._dialect.get("capacity")
        return capacity

    @property
    def instances(self) -> list[str]:
        """Instances that exist already, where the suite can't make any."""
        return [str(name) for name in self._dialect.get("instances", ())]

    def fits(self, capacity: int | None, room: int) -> None:
        """Raises NotObservable unless instances of fixed capacity have exactly this one, or at least this room."""
        fixed = self.fixed_capacity
        if fixed is not None and (fixed != capacity if capacity is not None else fixed < room):
            raise NotObservable("instances whose capacity the suite can set", f"[dialect] capacity = {fixed}")


def blocked(request: Request) -> NotObservable:
    """Returns the one cause of all checks that need an administration call which the target does not offer."""
    return NotObservable(*(_DRAIN if "drain" in request.path else _REGISTRATION))
