"""What a client of a walk was told, and which of it a command means."""

import uuid
from dataclasses import dataclass, field

from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer


@dataclass
class Notes:
    """What one client was told so far, oldest first, and its sockets."""

    sessions: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)
    socket: Socket | None = None
    # Sockets that were superseded, and since when.
    superseded: list[tuple[float, Socket]] = field(default_factory=list)
    socket_node: str = ""
    node: str = ""
    where: str = ""

    def told(self, answer: Answer, where: str) -> None:
        if answer.session_id:
            self.where = where
        for value, known in ((answer.session_id, self.sessions), (answer.token, self.tokens)):
            if value and value not in known:
                known.append(value)
        if answer.offer:
            self.offers.append(answer.offer)


def named_among(named: str, mine: list[str], siblings: list[str]) -> str:
    """Returns the value that a command calls so; empty if there is none."""
    match named:
        case "current" | "offer":
            return mine[-1] if mine else ""
        case "previous":
            return mine[-2] if len(mine) > 1 else ""
        case "of sibling":
            return siblings[-1] if siblings else ""
        case "unknown":
            return str(uuid.uuid4())
    return ""
