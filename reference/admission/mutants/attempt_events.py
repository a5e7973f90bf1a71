"""Violations of the rows about the events of attempts."""

import asyncio
from dataclasses import replace
from typing import Any

from holdfast.reference.admission.attempts import Attempt, Attempts, fresh_id
from holdfast.reference.admission.events import Events
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.rules import MESSAGES
from holdfast.reference.admission.verdicts import Promoted, Record, Verdict


@violates("AD-OBS-01", 1, "Names drift, e.g. connection.rejected or admission_timeout.")
class OtherName(Events):
    def emit(self, event: str, **fields: Any) -> None:
        super().emit("admission_timeout" if event == "connection.timeout" else event, **fields)


@violates("AD-OBS-01", 2, "Events are formatted sentences.")
class Sentences(Events):
    def emit(self, event: str, **fields: Any) -> None:
        if event.startswith("connection."):
            self.log("info", f"{event} of {fields['characterId']} on {fields['instanceId']}: {fields}")
        else:
            super().emit(event, **fields)


@violates("AD-OBS-02", 1, "connection.attempt is written only for attempts that pass validation.")
class StartOfValidOnes(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        valid = attempt.malformed is None and attempt.user_id is not None
        if valid or event != "connection.attempt":
            super().emit(event, attempt, **fields)


@violates("AD-OBS-02", 2, "A late success after the timeout logs connection.admitted as well.")
class LateSuccessLogged(Attempts):
    async def ask(self, attempt: Attempt, facts: Record) -> Verdict:
        answer = asyncio.ensure_future(super().ask(attempt, facts))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(lambda late: self.late(attempt, late))
            raise

    def late(self, attempt: Attempt, answer: asyncio.Future[Verdict]) -> None:
        if answer.exception() is None and answer.result()["outcome"] == "success":
            self.succeeded(attempt, answer.result())


@violates("AD-OBS-02", 3, "A new id is drawn for every log line.")
class IdPerLine(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        super().emit(event, replace(attempt, attempt_id=fresh_id()), **fields)


@violates("AD-OBS-03", 1, "Queued attempts are logged as connection.failed.")
class QueuedAsFailed(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        if event == "connection.queued":
            event, fields = "connection.failed", {"reason": "CAPACITY_FULL", **fields}
        super().emit(event, attempt, **fields)


@violates("AD-OBS-03", 2, "connection.admitted lacks the session id.")
class NoSessionId(Events):
    def emit(self, event: str, **fields: Any) -> None:
        if event == "connection.admitted":
            del fields["sessionId"]
        super().emit(event, **fields)


@violates("AD-OBS-03", 3, "Promotions are silent.")
class SilentPromotions(Promoter):
    def announce(self, instance_id: str, promoted: Promoted) -> None:  # noqa: ARG002  # the base class names it
        self.node.metrics.observe_wait(promoted["waitMs"] / 1000)


@violates("AD-OBS-03", 4, "reason of connection.failed holds the human-readable message.")
class MessageAsReason(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        if event == "connection.failed":
            fields["reason"] = MESSAGES[fields["reason"]]
        super().emit(event, attempt, **fields)


@violates("AD-OBS-03", 5, "Throttled attempts are logged as connection.failed with reason RATE_LIMITED.")
class ThrottledAsFailed(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        if event == "connection.throttled":
            event, fields = "connection.failed", {"reason": "RATE_LIMITED", **fields}
        super().emit(event, attempt, **fields)
