"""Violations of the rows about session replacement."""

import asyncio
from typing import ClassVar

from holdfast.reference.admission.kicks import Kicks
from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.verdicts import Record
from holdfast.reference.shared.redislink import Call

REPLACED = 4001

violation("AD-REPL-01", 1, "ALREADY_IN_SESSION comes without a token.", lua={"offers_replacement": "return false"})

OFFER = """
local record = {{characterId = facts.characterId, userId = facts.userId, instanceId = facts.instanceId,
  existingSessionId = session.sessionId}}
write('SET', key('replacement', facts.newReplacementToken), cjson.encode(record){life})
return facts.newReplacementToken"""

violation(
    "AD-REPL-01",
    2,
    "The old session is marked terminating when the offer is made.",
    lua={
        "offer_replacement": f"""
session.state = 'terminating'
store_session(session)
{OFFER.format(life=", 'PX', limits.replacementMs")}"""
    },
)

violation(
    "AD-REPL-01",
    3,
    "An offer is made across instances and its confirmation ends the remote session.",
    lua={"offers_replacement": "return session.state == 'active' and not draining(facts.instanceId)"},
)

violation(
    "AD-REPL-01",
    4,
    "A conflicting attempt on another instance force-closes the running session.",
    lua={
        "existing_session": """
local session = session_of(facts)
if not session then
  return nil
end
told(session.attemptId)
local verdict = refuse(facts, 'ALREADY_IN_SESSION')
if session.instanceId ~= facts.instanceId then
  end_session(session, 'user', milliseconds(facts))
elseif offers_replacement(facts, session) then
  verdict.replacementToken = offer_replacement(facts, session)
end
return verdict"""
    },
)

# The record is made anew, but under the old id, and neither socket counts as taken over.
violation(
    "AD-REPL-02",
    1,
    "The old session id is reused and both clients stay connected.",
    lua={
        "new_session": """
local id = facts.newSessionId
if facts.kind == 'replace' then
  id, facts.session.socket = facts.session.sessionId, nil
end
return {sessionId = id, characterId = facts.characterId, userId = facts.userId, instanceId = facts.instanceId,
  state = 'active', admittedAt = milliseconds(facts), reconnectionToken = facts.newToken,
  attemptId = facts.attemptId}""",
        "beat": """
local session = session_by_id(facts.sessionId)
if session then
  touch(session, milliseconds(facts))
end
return {alive = session ~= nil}""",
    },
)


class SplitSwap(Split):
    """Some writes of a confirmed replacement follow the script; everything else stays atomic."""

    lua: ClassVar = {"end_replaced": "limits.swapping = true\nend_session(session, 'replace', now_ms)"}


def later(condition: str) -> str:
    """Returns a body of `write` that puts off the writes of a replacement for which the condition holds."""
    return f"""
local command, name = ...
if not limits.swapping or not ({condition}) then
  return redis.call(...)
end
{RECORD}"""


@violates("AD-REPL-02", 2, "The new session is written first, the old one removed afterwards.")
class NewBeforeOld(SplitSwap):
    record = later("command == 'SREM' or command == 'DEL' and string.find(name, 'session:data:', 1, true)")


@violates("AD-REPL-02", 3, "The old socket stays open until its next heartbeat fails.")
class NotKicked(Kicks):
    def send(self, socket_id: str | None, code: int) -> None:
        if code != REPLACED:
            super().send(socket_id, code)


violation(
    "AD-REPL-02",
    4,
    "The old reconnection token still resumes the old session.",
    lua={
        "end_replaced": """
write('SREM', slots_key(session.instanceId), session.sessionId)
write('DEL', beat_key(session))"""
    },
)

violation(
    "AD-REPL-03",
    1,
    "Cancel is a no-op and the token still works.",
    lua={"consume_offer": "if facts.kind then write('DEL', key('replacement', facts.replaceToken)) end"},
)

violation(
    "AD-REPL-03",
    2,
    "The replacement token is stored without TTL.",
    lua={"offer_replacement": OFFER.format(life="")},
)

violation(
    "AD-REPL-04",
    1,
    "A second plain attempt within a minute counts as confirmation.",
    lua={
        "existing_session": """
local session = session_of(facts)
if not session then
  return nil
end
told(session.attemptId)
if not offers_replacement(facts, session) then
  return refuse(facts, 'ALREADY_IN_SESSION')
elseif write('SET', key('asked', facts.characterId), 1, 'NX', 'PX', limits.replacementMs) then
  return refuse(facts, 'ALREADY_IN_SESSION', {replacementToken = offer_replacement(facts, session)})
end
facts.session, facts.replaceToken = session, facts.newReplacementToken
return swap(facts)"""
    },
)

violation(
    "AD-REPL-04",
    2,
    "The token stays after use and each use makes another session.",
    lua={
        "consume_offer": "if not facts.kind then write('DEL', key('replacement', facts.replaceToken)) end",
        "offer_fits": """
return offer.characterId == facts.characterId and offer.userId == facts.userId
  and offer.instanceId == facts.instanceId""",
    },
)

violation(
    "AD-REPL-04",
    3,
    "The character comes from the request and the token is only checked to exist.",
    lua={"offer_fits": "return true"},
)

# The node passes a malformed token on as '?'.
violation(
    "AD-REPL-04",
    4,
    "Any syntactically valid token is accepted.",
    lua={
        "replacement_token": """
facts.session = session_of(facts)
if not facts.session or facts.replaceToken == '?' then
  return refuse(facts, 'INVALID_REPLACE_TOKEN')
end"""
    },
)


@violates("AD-REPL-04", 5, "The replaceToken path skips version and suspension.")
class SkipsChecks(Rules):
    precedence = Rules.precedence | {
        "replace": tuple(step for step in Rules.precedence["replace"] if step not in {"not_suspended", "build_current"})
    }


@violates("AD-REPL-05", 1, "The old slot is released the normal way and b is promoted into it.")
class ReleasedNormally(SplitSwap):
    record = later("command == 'SADD'")

    async def pause(self, facts: Record) -> None:
        if facts["kind"] == "replace":
            await self.node.promoter.fill(facts["instanceId"])


@violates("AD-REPL-05", 2, "Both confirmations succeed and the first new session leaks.")
class BothWin(SplitSwap):
    """Judges in one call and writes in the next, which is one transaction but does not check again."""

    record = later("true")

    async def write(self, writes: list[list[str]], call: Call) -> None:
        await asyncio.gather(call("MULTI"), *(call(*words) for words in writes), call("EXEC"))
