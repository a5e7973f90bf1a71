"""Violations of persist, publish and answer (3.1 steps 4 to 6)."""

import asyncio
from contextlib import suppress
from typing import ClassVar

import hiredis
from aiohttp import web

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.mutants.split import Rescripted, Split
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.payloads import STOP
from holdfast.reference.intents.store import AWAY, Accepted, Move, Record
from holdfast.reference.shared.redislink import Call as Send
from holdfast.reference.shared.rescripted import Lua

LATER = 0.05


@violates("IN-QUEUE-01", 1, "The record is created by the worker when it picks the event up.")
class RecordedByWorker(Rescripted):
    lua: ClassVar[Lua] = {
        "store_session": """
local words = {'state', 'NEW', 'reason', 'R_NONE', 'updatedAtMs', whole(milliseconds(facts))}
for name, value in pairs(facts.session) do
  words[#words + 1], words[#words + 2] = name, value
end
write('HSET', 'later:' .. facts.session.sessionId, unpack(words))"""
    }

    async def session(self, session_id: str) -> Record | None:
        if hasattr(self.node, "orchestrator"):
            with suppress(hiredis.ReplyError):
                await self.node.link.call("RENAME", f"later:{session_id}", f"session:{session_id}")
        return await super().session(session_id)


violation(
    "IN-QUEUE-01",
    2,
    "The record is created in STARTING.",
    lua={
        "first_state": "return 'STARTING'",
        "read_session": """
local session = load_session(facts.sessionId)
if session and session.state == 'STARTING' and not session.incarnation then
  session.state = 'NEW'
end
return {session = session}""",
        "may_move": """
for _, state in ipairs(facts.from) do
  if session.state == state or (state == 'NEW' and session.state == 'STARTING' and not session.incarnation) then
    return true
  end
end
return false""",
    },
)


class InBackground(Split):
    """Makes writes a while after the answer."""

    async def soon(self, writes: list[list[str]], call: Send) -> None:
        await asyncio.sleep(LATER)
        await super().write(writes, call)


@violates("IN-QUEUE-01", 3, "The record is written by a background task after the answer.")
class RecordedLater(InBackground):
    async def write(self, writes: list[list[str]], call: Send) -> None:
        self.kept = asyncio.create_task(self.soon(writes, call))


violation(
    "IN-QUEUE-01",
    4,
    "Terminal sessions are deleted at once, so the client polls 404 and never learns why.",
    lua={"drop_mapping": "write('DEL', session_key(session.sessionId))"},
)


@violates("IN-QUEUE-02", 1, "The event is published before the record is written.")
class PublishedFirst(Split):
    between = LATER


@violates("IN-QUEUE-02", 2, "Publishing is handed to a background task and the 202 goes out first.")
class PublishedLater(InBackground):
    async def write(self, writes: list[list[str]], call: Send) -> None:
        await super().write(writes[1:], call)
        self.kept = asyncio.create_task(self.soon(writes[:1], call))


violation(
    "IN-QUEUE-03",
    1,
    "The event is published twice, before and after persisting.",
    lua={
        "store_mapping": """
publish(facts.event)
write('SET', mapping_key(facts.session.idemKey), facts.session.sessionId, 'PX', whole(limits.idemTtlMs))"""
    },
)


class WithoutField(Acceptance):
    field = ""

    def start_event(self, call: Call) -> Record:
        event = super().start_event(call)
        return {**event, "data": event["data"].replace(f'"{self.field}"', '"other"')}


@violates("IN-QUEUE-03", 2, "The profile is missing, so the worker runs the default one.")
class WithoutProfile(WithoutField):
    field = "profileId"


@violates("IN-QUEUE-03", 3, "The start offset of a recording is missing.")
class WithoutOffset(WithoutField):
    field = "startMs"


@violates("IN-QUEUE-04", 1, "201 Created.")
class Created(Acceptance):
    def status(self, outcome: Accepted) -> int:
        return 201 if outcome.made else 202


@violates("IN-QUEUE-04", 2, "Empty 202 body, the ID only in a Location header.")
class InLocation(Acceptance):
    def respond(self, call: Call) -> web.Response:
        session_id = call.outcome.session_id if call.outcome else ""
        return web.Response(status=202, headers={"Location": f"/api/v3/sessions/{session_id}"})


class Waiting(Acceptance):
    """Waits until the session is in none of these states."""

    async def wait(self, call: Call, *states: str) -> None:
        while call.outcome and call.intent.type != STOP:
            session = await self.node.store.session(call.outcome.session_id)
            if session is None or session["state"] not in states:
                return
            await asyncio.sleep(LATER)


@violates("IN-QUEUE-04", 3, "The handler waits for READY before it answers.")
class AnsweredWhenReady(Waiting):
    async def record(self, call: Call) -> None:
        await super().record(call)
        await self.wait(call, "NEW", "STARTING")


@violates("IN-QUEUE-05", 1, "A capacity check in the API answers 503 when all slots are taken.")
class CapacityChecked(Acceptance):
    async def validate(self, call: Call) -> None:
        await super().validate(call)
        taken = await self.node.link.call("KEYS", "lease:tuner:*")
        if not call.intent.vod and call.intent.type != STOP and len(taken) >= len(self.node.settings.tuner_slots):
            raise self.node.http.unavailable()


@violates("IN-QUEUE-05", 2, "The API waits for a worker's acknowledgement and answers 504 when none is alive.")
class Acknowledged(Waiting):
    async def post(self, request: web.BaseRequest, request_id: str) -> web.Response:
        try:
            async with asyncio.timeout(2):
                return await super().post(request, request_id)
        except TimeoutError:
            return web.Response(status=504)

    async def record(self, call: Call) -> None:
        await super().record(call)
        await self.wait(call, "NEW")


@violates("IN-QUEUE-05", 3, "The API answers 503, or does not start, without a slot list.")
class NeedsSlots(Acceptance):
    async def guard(self, call: Call) -> None:
        if not self.node.settings.tuner_slots:
            raise self.node.http.unavailable()
        await super().guard(call)


@violates("IN-QUEUE-06", 1, "The API still takes lease:service for its decision.")
class StillLeases(Acceptance):
    async def record(self, call: Call) -> None:
        if not call.intent.vod and call.intent.type != STOP:
            await self.node.leases.acquire(self.node.leases.key_service(call.record()), call.session_id)
        await super().record(call)


@violates("IN-QUEUE-06", 2, "The stop handler of the API deletes the lease keys.")
class StopFrees(Acceptance):
    async def record(self, call: Call) -> None:
        if call.intent.type == STOP and (session := await self.node.store.session(call.intent.session_id)):
            keys = [self.node.leases.key_service(session), f"lease:tuner:{session.get('tunerSlot', '')}"]
            await self.node.link.call("DEL", *keys)
        await super().record(call)


@violates("IN-QUEUE-06", 3, "A replay extends the holder's lease.")
class ReplayExtends(Acceptance):
    async def record(self, call: Call) -> None:
        await super().record(call)
        if call.outcome and not call.outcome.made:
            lease = self.node.leases.key_service(call.record())
            await self.node.link.call("PEXPIRE", lease, int(self.node.settings.lease_ttl * 1000))


@violates("IN-QUEUE-07", 1, "202 with a session ID that exists nowhere.")
class AcceptedNowhere(Acceptance):
    async def persist(self, call: Call) -> Accepted:
        try:
            return await super().persist(call)
        except AWAY:
            return Accepted(True, call.session_id, "")


violation(
    "IN-QUEUE-07",
    2,
    "The mapping to the never published session survives and is replayed.",
    lua={
        "accept": """
local known = known_session(facts)
if known then
  return {made = false, sessionId = known.sessionId, correlationId = known.correlationId}
end
store_session(facts)
store_mapping(facts)
publish(facts.event)
return {made = true, sessionId = facts.session.sessionId}"""
    },
)

violation(
    "IN-QUEUE-08",
    1,
    "Fire-and-forget publishing: the session stays NEW for ever.",
    lua={
        "publish": """
for _, worker in ipairs(redis.call('KEYS', 'worker:*')) do
  if redis.call('HGET', worker, 'state') == 'ready' then
    return write('XADD', limits.bus, '*', 'type', event.type, 'data', event.data)
  end
end"""
    },
)


@violates("IN-QUEUE-08", 2, "The API marks a session FAILED that no worker has picked up within half a lease_ttl.")
class GivesUp(Acceptance):
    async def record(self, call: Call) -> None:
        await super().record(call)
        self.node.spawn(self.give_up(call.session_id))

    async def give_up(self, session_id: str) -> None:
        await asyncio.sleep(self.node.settings.lease_ttl / 2)
        await self.node.store.move(Move(session_id, ("NEW",), "FAILED", "R_UNKNOWN"))
