"""Violations of the rows about the reconnection token."""

from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Status

violation(
    "AD-RECON-01",
    1,
    "The token equals the session id.",
    lua={
        "new_session": """
return {sessionId = facts.newSessionId, characterId = facts.characterId, userId = facts.userId,
  instanceId = facts.instanceId, state = 'active', admittedAt = milliseconds(facts),
  reconnectionToken = facts.newSessionId, attemptId = facts.attemptId}"""
    },
)


@violates("AD-RECON-01", 2, "A promoted session gets no token.")
class PromotedWithoutToken(Store):
    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        found = await super().status(user_id, character_id, instance_id)
        found.pop("reconnectionToken", None)
        return found


# What the record lacks is read from the session.
violation(
    "AD-RECON-01",
    3,
    "The stored record holds the session id alone.",
    lua={
        "store_token": """
write('SET', token_key(session.reconnectionToken), cjson.encode({sessionId = session.sessionId}))
if expires_ms then
  write('PEXPIREAT', token_key(session.reconnectionToken), expires_ms)
end""",
        "token_record": """
local record = load(token_key(facts.reconnectionToken))
local session = record and session_by_id(record.sessionId)
if session then
  session.expiresAt = session.graceExpiresAt
end
return session""",
    },
)

STORED = """
local record = {{sessionId = session.sessionId, characterId = session.characterId, userId = session.userId,
  instanceId = session.instanceId, expiresAt = {expires}}}
write('SET', token_key(session.reconnectionToken), cjson.encode(record))"""

violation(
    "AD-RECON-04",
    1,
    "Expiry is enforced only by the janitor, so the token works up to 90 s.",
    lua={
        "store_token": STORED.format(expires="expires_ms"),
        "token_record": "return load(token_key(facts.reconnectionToken))",
        "resumable": "return true",
    },
)

violation(
    "AD-RECON-04",
    2,
    "The token record is stored with a TTL of 900 s.",
    settings=lambda given: {"token_ttl": 15 * given.token_ttl},
)

violation(
    "AD-RECON-04",
    3,
    "The 60 s run from issue, so a session older than a minute cannot be reclaimed.",
    lua={
        "store_token": f"""
if expires_ms then
  return
end
local issued = math.floor(now() / 1000)
{STORED.format(expires="issued + limits.tokenMs")}
write('PEXPIRE', token_key(session.reconnectionToken), limits.tokenMs)"""
    },
)

violation(
    "AD-RECON-05",
    1,
    "The session is looked up by token alone, so another character is accepted.",
    lua={"token_fits": "return record.instanceId == facts.instanceId and record.userId == facts.userId"},
)

violation(
    "AD-RECON-05",
    2,
    "The instance in the path is ignored on reconnect.",
    lua={"token_fits": "return record.characterId == facts.characterId and record.userId == facts.userId"},
)

REFUSED = """
{first}
return refuse(facts, 'INVALID_RECONNECTION_TOKEN', {{suspicious = kind, seen = watch_suspicious(facts, kind)}})"""

violation(
    "AD-RECON-05",
    3,
    "Any presentation deletes the token, so a stranger can void it.",
    lua={"token_refusal": REFUSED.format(first="write('DEL', token_key(facts.reconnectionToken))")},
)

violation(
    "AD-RECON-05",
    4,
    "A refused presentation renews the 60 s.",
    lua={
        "token_refusal": REFUSED.format(
            first="""
local record = token_record(facts)
local session = record and session_by_id(record.sessionId)
if session and session.state == 'grace' then
  start_grace(session, milliseconds(facts))
end"""
        )
    },
)

violation(
    "AD-RECON-06",
    1,
    "An owner's plain attempt during grace resumes the session.",
    lua={
        "existing_session": """
local session = session_of(facts)
if session and session.state == 'grace' and session.instanceId == facts.instanceId then
  facts.session, facts.reconnectionToken = session, session.reconnectionToken
  return resume(facts)
elseif session then
  local offer = offers_replacement(facts, session) and offer_replacement(facts, session) or nil
  return refuse(facts, 'ALREADY_IN_SESSION', {replacementToken = offer})
end"""
    },
)

violation(
    "AD-RECON-06",
    2,
    "Sessions in grace are invisible to the existence check and a second session is made.",
    lua={
        "session_of": """
local sessionId = redis.call('GET', marker_key(facts.characterId, facts.instanceId))
local session = sessionId and session_by_id(sessionId)
return session and session.state == 'active' and session or nil"""
    },
)

violation(
    "AD-RECON-06",
    3,
    "An unknown token falls through to ordinary admission.",
    lua={
        "order_of": """
local unknown = facts.kind == 'reconnect' and not token_record(facts)
return limits.precedence[unknown and 'admit' or facts.kind]"""
    },
)

violation(
    "AD-RECON-07",
    1,
    "The used token is left in place until its TTL.",
    lua={"rotate_token": "session.reconnectionToken = facts.newToken\nstore_token(session)"},
)

violation("AD-RECON-07", 2, "The same token is handed back.", lua={"rotate_token": "store_token(session)"})

violation(
    "AD-RECON-07",
    3,
    "The rotated token inherits the rest of the old TTL.",
    lua={
        "rotate_token": """
session.tokenExpiresAt = token_record(facts).expiresAt
write('DEL', token_key(facts.reconnectionToken))
session.reconnectionToken = facts.newToken
store_token(session)""",
        "store_token": f"""
local expires = session.tokenExpiresAt or expires_ms
{STORED.format(expires="expires")}
if expires then
  write('PEXPIREAT', token_key(session.reconnectionToken), expires)
end""",
    },
)


@violates("AD-RECON-07", 4, "Reading and deleting the token are separate commands, so two presentations win.")
class ReadThenDelete(Split):
    """Everything else that a reconnect does stays atomic."""

    record = f"""
local command, name = ...
if command ~= 'DEL' or not string.find(name, 'session:reconnect:', 1, true) then
  return redis.call(...)
end
{RECORD}"""
