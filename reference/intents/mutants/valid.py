"""Violations of the payload's rules (3.1 step 2)."""

import json
import time
from typing import Any

from aiohttp import web

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.http import Http
from holdfast.reference.intents.mutants.reach import note
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.payloads import START, STOP, Body, Intent, Payloads
from holdfast.reference.intents.problems import Refusal, invalid


@violates("IN-VALID-01", 1, "A parse error falls back to an empty default request and yields 202.")
class DefaultRequest(Payloads):
    def parse(self, raw: bytes) -> Body:
        try:
            return super().parse(raw)
        except Refusal:
            return {"serviceRef": "1:0:1:0:0:0:0:0:0:0:"}


@violates("IN-VALID-01", 2, "A JSON value that is no object raises an unhandled error: 500.")
class NoObject(Payloads):
    def parse(self, raw: bytes) -> Body:
        try:
            return dict(json.loads(raw).items())
        except ValueError:
            raise invalid("The body is not valid JSON.") from None


@violates("IN-VALID-01", 3, "A record in state FAILED is stored for each invalid payload.")
class FailedRecord(Acceptance):
    async def validate(self, call: Call) -> None:
        try:
            await super().validate(call)
        except Refusal:
            await note(self.node, call, "FAILED")
            raise


@violates("IN-VALID-02", 1, "A missing serviceRef is enqueued as an empty string.")
class NoService(Payloads):
    def service_of(self, body: Body, recording: str) -> str:
        return super().service_of(body, recording) if "serviceRef" in body else ""


@violates(
    "IN-VALID-02",
    2,
    "Only presence is tested: a blank serviceRef passes and lease:service: with nothing behind it is attempted.",
)
class OnlyPresence(Payloads):
    def service_of(self, body: Body, recording: str) -> str:
        value = body.get("serviceRef")
        return "" if isinstance(value, str) and not value.strip() else super().service_of(body, recording)


@violates("IN-VALID-02", 3, "Numbers and lists are turned into strings and accepted.")
class MadeText(Payloads):
    def part_of(self, body: Body, name: str) -> str:
        value = body.get(name)
        return super().part_of({**body, name: str(value)} if isinstance(value, int | list) else body, name)


@violates("IN-VALID-02", 4, "The profile is not checked and any text makes a new session.")
class AnyProfile(Payloads):
    def check_profile(self, value: Any) -> None:
        if not isinstance(value, str):
            super().check_profile(value)


@violates("IN-VALID-03", 1, "A recording start without recordingId falls back to serviceRef as target.")
class ServiceInstead(Payloads):
    def check_params(self, body: Body, recording: str) -> None:
        super().check_params(body, recording or str(body.get("serviceRef")))


@violates("IN-VALID-03", 2, "A negative startMs is accepted and gives bucket -1.")
class Negative(Payloads):
    def offset_of(self, body: Body) -> int:
        value = body.get("startMs", 0)
        return value if isinstance(value, int) and value < 0 else super().offset_of(body)


@violates("IN-VALID-03", 3, "An absent startMs is replaced by the current time.")
class FromNow(Payloads):
    def offset_of(self, body: Body) -> int:
        return super().offset_of(body) if "startMs" in body else int(time.time() * 1000)


@violates("IN-VALID-03", 4, "Parts containing a pipe are joined as they are.")
class Piped(Payloads):
    def check_pipe(self, name: str, value: str) -> None:
        """Lets pipes through."""


@violates("IN-VALID-03", 5, "Of two contradicting profile fields one silently wins.")
class OneProfileWins(Payloads):
    def profile_of(self, body: Body) -> str:
        one = {"profile": body.get("profileID", body.get("profile"))} if "profile" in body else {}
        return super().profile_of({**body, **one})


@violates("IN-VALID-04", 1, "Unknown types are treated as start.")
class AllAreStarts(Payloads):
    def type_of(self, body: Body) -> str:
        return STOP if body.get("type") == STOP else START


@violates("IN-VALID-04", 2, "Unknown fields are ignored and the intent accepted.")
class OpenSchema(Payloads):
    def check_fields(self, body: Body) -> None:
        """Lets unknown fields through."""


@violates("IN-VALID-04", 3, "A stop without sessionId is 202 and publishes an event with an empty id.")
class StopOfNothing(Acceptance):
    async def validate(self, call: Call) -> None:
        if call.body.get("type") == STOP and "sessionId" not in call.body:
            call.intent = Intent(STOP)
            await self.node.store.publish(self.stop_event(call))
        else:
            await super().validate(call)


violation(
    "IN-VALID-04",
    4,
    "No size limit: a body of twice body_max_bytes is 202.",
    lambda s: {"body_max_bytes": 1000 * s.body_max_bytes},
)


@violates("IN-VALID-04", 5, "Refusals are plain text without code.")
class PlainText(Http):
    def refused(self, refusal: Refusal, request: web.BaseRequest, request_id: str) -> web.Response:
        reply = super().refused(refusal, request, request_id)
        return web.Response(text=refusal.detail or "refused", status=reply.status)
