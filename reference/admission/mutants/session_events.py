"""Violations of the rows about the events of sessions, and about the counters of reconnects."""

from typing import Any

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.events import Events
from holdfast.reference.admission.janitor import Janitor
from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.sockets import Socket, Sockets
from holdfast.reference.admission.verdicts import Ended, Record


@violates("AD-OBS-04", 1, "connection.reconnect_attempt is written only when the reconnect succeeds.")
class GoodPresentationsOnly(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        if event == "connection.reconnected":
            super().emit("connection.reconnect_attempt", attempt)
        if event != "connection.reconnect_attempt":
            super().emit(event, attempt, **fields)


@violates("AD-OBS-04", 2, "A resumed session is logged as connection.admitted.")
class ResumedAsAdmitted(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        super().emit("connection.admitted" if event == "connection.reconnected" else event, attempt, **fields)


@violates("AD-OBS-04", 3, "reconnection_attempt_total counts successes only.")
class GoodPresentationsCounted(Metrics):
    def count_presentation(self) -> None:
        """Counted when it has succeeded."""

    def count_resumed(self) -> None:
        super().count_presentation()
        super().count_resumed()


@violates("AD-OBS-04", 4, "reconnection_success_total rises with every presentation.")
class EveryPresentationASuccess(Metrics):
    def count_presentation(self) -> None:
        super().count_presentation()
        super().count_resumed()

    def count_resumed(self) -> None:
        """Counted when it was presented."""


@violates("AD-OBS-05", 1, "The reason is always network.")
class AlwaysNetwork(Events):
    def emit(self, event: str, **fields: Any) -> None:
        if event == "connection.disconnected":
            fields["reason"] = "network"
        super().emit(event, **fields)


@violates("AD-OBS-05", 2, "Nothing is logged for a lost socket until grace ends.")
class SilentLoss(Sockets):
    def lost(self, facts: Record) -> None:
        self.node.recovery.owe("drop", facts, lambda _: None)


@violates("AD-OBS-05", 3, "The close handler of a replaced socket adds a second line with reason=network.")
class SecondLine(Sockets):
    def ended(self, socket: Socket, code: int | None) -> None:
        super().ended(socket, code)
        if socket.closed_by_us == 4001:
            self.emit_lost(socket.session)


@violates("AD-OBS-05", 4, "Expiry of grace removes the record silently.")
class SilentExpiry(Janitor):
    def announce(self, session: Ended) -> None:
        if session["reason"] != "grace_expired":
            super().announce(session)


@violates("AD-OBS-05", 5, "Stale cleanup logs reason=janitor.")
class FifthReason(Janitor):
    def announce(self, session: Ended) -> None:
        if session["reason"] == "network":
            session["reason"] = "janitor"
        super().announce(session)
