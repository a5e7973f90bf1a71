"""Violations of the rows about the 10 s rule: settled in time, and truly."""

import asyncio
from time import monotonic
from typing import Any

from aiohttp import web

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.verdicts import Verdict


@violates("AD-TIME-01", 1, "No deadline: the request waits until Redis answers.")
class NoDeadline(Attempts):
    def deadline_of(self, received: float) -> float:
        return received + 3600


@violates("AD-TIME-01", 2, "The timer is armed after the rate-limit and drain look-ups.")
class ArmedLate(Attempts):
    async def settle(self, attempt: Attempt) -> Verdict:
        prefix, call = self.node.settings.prefix, self.node.link.call
        await call("PTTL", f"{prefix}ratelimit:lock:{attempt.user_id}")
        await call("EXISTS", f"{prefix}session:drain:{attempt.instance_id}")
        attempt.deadline = self.deadline_of(monotonic())
        return await super().settle(attempt)


@violates("AD-TIME-01", 3, "A client-given timeout of up to 30 s is honoured.")
class ClientsTimeout(Http):
    def read_body(self, attempt: Attempt, request: web.BaseRequest, body: dict[str, Any]) -> None:
        super().read_body(attempt, request, body)
        if isinstance(wanted := body.get("timeout"), int):
            attempt.deadline = attempt.received + min(wanted, 30_000) / 1000


@violates("AD-TIME-01", 4, "The token paths run outside the deadline.")
class TokensWait(Attempts):
    async def settle(self, attempt: Attempt) -> Verdict:
        if attempt.kind != "admit":
            attempt.deadline += 3600
        return await super().settle(attempt)


@violates("AD-TIME-02", 1, "A bare 500 is returned at the deadline.")
class BareError(Http):
    def answered(self, attempt: Attempt, verdict: Verdict) -> web.Response:
        if verdict["outcome"] == "timeout":
            return web.Response(status=500)
        return super().answered(attempt, verdict)


@violates("AD-TIME-02", 2, "Timeouts are counted as failed.")
class CountedAsFailed(Attempts):
    def outcome_label(self, verdict: Verdict) -> str:
        label = super().outcome_label(verdict)
        return "failed" if label == "timeout" else label


@violates("AD-TIME-02", 3, "connection.timeout has no elapsed time.")
class NoElapsedTime(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        fields.pop("elapsedMs", None)
        super().emit(event, attempt, **fields)


violation(
    "AD-TIME-03", 1, "The deadline is 5 s.", settings=lambda given: {"attempt_deadline": given.attempt_deadline / 2}
)


@violates("AD-TIME-03", 2, "All outcomes are held back until the deadline.")
class HeldBack(Attempts):
    async def settle(self, attempt: Attempt) -> Verdict:
        verdict = await super().settle(attempt)
        await asyncio.sleep(attempt.deadline - monotonic())
        return verdict


@violates("AD-TIME-04", 1, "The timer is left running and logs a timeout 10 s after every success.")
class TimerLeftRunning(Attempts):
    def succeeded(self, attempt: Attempt, verdict: Verdict) -> None:
        super().succeeded(attempt, verdict)
        asyncio.get_running_loop().call_later(self.node.settings.attempt_deadline, self.expired, attempt)

    def expired(self, attempt: Attempt) -> None:
        self.emit("connection.timeout", attempt, elapsedMs=round(self.elapsed(attempt) * 1000))


@violates("AD-TIME-04", 2, "The timer goes on after queue placement and removes the entry at 10 s.")
class TimedOutInLine(Attempts):
    def finish(self, attempt: Attempt, verdict: Verdict) -> None:
        super().finish(attempt, verdict)
        if verdict["outcome"] == "queued":
            asyncio.get_running_loop().call_later(attempt.deadline - monotonic(), self.expired, attempt)

    def expired(self, attempt: Attempt) -> None:
        facts = {
            "userId": attempt.user_id,
            "characterId": attempt.character_id,
            "instanceId": attempt.instance_id,
        }
        self.node.recovery.owe("unqueue", facts, lambda _: None)
