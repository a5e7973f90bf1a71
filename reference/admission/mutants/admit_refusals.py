"""Violations of the rows about who is refused, with which code, and in which order."""

from typing import Any, ClassVar

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.http import NOBODY, Http
from holdfast.reference.admission.identity import Identity
from holdfast.reference.admission.mutants.rescripted import Lua, Rescripted, ahead
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.verdicts import Record, Verdict


@violates("AD-ADMIT-05", 1, "Refusals carry only a human-readable message.")
class MessageOnly(Http):
    def add_outcome(self, body: dict[str, Any], verdict: Verdict) -> None:
        super().add_outcome(body, verdict)
        body.pop("reason", None)


violation(
    "AD-ADMIT-05",
    2,
    "Maintenance is reported as DRAIN_MODE.",
    lua={"in_service": "if not serving(facts.instanceId) then return refuse(facts, 'DRAIN_MODE') end"},
)


@violates("AD-ADMIT-06", 1, "A missing Authorization header falls back to a default user.")
class DefaultUser(Identity):
    def authenticate(self, authorization: str) -> str | None:
        return super().authenticate(authorization) if authorization else "default"


@violates("AD-ADMIT-06", 2, "The empty string is accepted as a character id.")
class EmptyCharacter(Http):
    """It is looked up like every other id, and not found."""

    def character_of(self, attempt: Attempt, value: Any) -> str:
        return NOBODY if value == "" else super().character_of(attempt, value)


@violates("AD-ADMIT-06", 3, "The raw path segment is put into key names and admitted.")
class RawSegment(Attempts):
    async def decide(self, attempt: Attempt) -> Verdict:
        if attempt.user_id is None or self.node.rules.is_id(attempt.instance_id):
            return await super().decide(attempt)
        status = f"{self.node.settings.prefix}instance:status:{attempt.instance_id}"
        await self.node.link.call("SET", status, "accepting")
        return await self.ask(attempt, self.facts(attempt, attempt.user_id))


violation(
    "AD-ADMIT-06",
    4,
    "Unknown instances are created on the fly with the default capacity.",
    lua={
        "instance_known": """
local status = key('instance:status', facts.instanceId)
if not redis.call('GET', status) then
  write('SET', status, 'accepting')
end"""
    },
)

violation(
    "AD-ADMIT-07",
    1,
    "Suspension is tested only on the direct-admit branch, so a full instance queues the character.",
    lua={
        "not_suspended": """
if character_of(facts).suspended and (facts.kind ~= 'admit' or may_enter(facts)) then
  return refuse(facts, 'CHARACTER_SUSPENDED')
end"""
    },
)

# A character that was queued with a wrong build is dropped when its turn comes.
violation(
    "AD-ADMIT-07",
    2,
    "The version is verified only at promotion.",
    lua={
        "build_current": """
if not facts.buildOk and (facts.kind ~= 'admit' or may_enter(facts)) then
  return refuse(facts, 'VERSION_MISMATCH')
end
write('SET', key('build', facts.characterId), facts.buildOk and 'current' or 'old')""",
        "may_be_promoted": """
local character = character_of(facts)
local current = redis.call('GET', key('build', facts.characterId)) == 'current'
return character and not character.suspended and current and not session_of(facts)""",
    },
)

violation(
    "AD-ADMIT-07",
    3,
    "The whole suspension record is echoed in the response.",
    lua={
        "not_suspended": """
if character_of(facts).suspended then
  local record = redis.call('HGETALL', key('character', facts.characterId))
  return refuse(facts, 'CHARACTER_SUSPENDED', {message = cjson.encode(record)})
end"""
    },
)


@violates(
    "AD-ADMIT-07",
    4,
    "Suspension is read before the script, so a character suspended while its attempt is in flight is admitted.",
)
class SuspensionReadBefore(Rescripted):
    lua: ClassVar[Lua] = {"not_suspended": "if facts.suspended then return refuse(facts, 'CHARACTER_SUSPENDED') end"}

    async def decide(self, facts: Record) -> Verdict:
        suspended = await self.node.link.call("HGET", self.name("character", facts["characterId"]), "suspended")
        return await super().decide(facts | {"suspended": suspended == b"1"})


@violates("AD-ADMIT-08", 1, "Suspension is checked before ownership and leaks another user's moderation state.")
class SuspensionBeforeOwnership(Rules):
    precedence = ahead("not_suspended", "character_owned")


@violates("AD-ADMIT-08", 2, "Version is checked before suspension.")
class VersionBeforeSuspension(Rules):
    precedence = ahead("build_current", "not_suspended")


@violates(
    "AD-ADMIT-08",
    3,
    "The session check runs before the version check and offers a replacement to an outdated client.",
)
class SessionBeforeVersion(Rules):
    precedence = ahead("existing_session", "build_current")


@violates("AD-ADMIT-08", 4, "Drain is tested at the route before anything else.")
class DrainFirst(Rules):
    precedence = ahead("drain", "rate_lock")


@violates("AD-ADMIT-08", 5, "Capacity and queue are tested before drain, so QUEUE_FULL is reported.")
class CapBeforeDrain(Rules):
    precedence = ahead("queue_cap", "drain")
