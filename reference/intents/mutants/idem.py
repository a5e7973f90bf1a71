"""Violations of what a known key does (3.1 step 3)."""

import hashlib
import json
import time

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.idemkeys import IdemKeys
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.payloads import Intent

LIVE = """(session.state == 'NEW' and not session.stopRequestedAtMs)
  or (is_running(session) and tonumber(session.leaseExpiresAtMs or 0) > milliseconds(facts))"""


def accepting(on_replay: str) -> str:
    """Returns the body of `accept` with something more done where a session is found."""
    return f"""
local known = known_session(facts)
if known then
  {on_replay}
  return {{made = false, sessionId = known.sessionId, correlationId = known.correlationId}}
end
publish(facts.event)
store_session(facts)
store_mapping(facts)
return {{made = true, sessionId = facts.session.sessionId}}"""


violation("IN-IDEM-01", 1, "Every POST makes a new session ID.", lua={"known_session": "return nil"})
violation(
    "IN-IDEM-01",
    2,
    "A mapping counts only once its session is READY, so a repeat during the start makes a second session.",
    lua={"is_live": "return session.state == 'READY'"},
)
violation(
    "IN-IDEM-02",
    1,
    "A fresh record is stored for each replay although the old ID is returned.",
    lua={"accept": accepting("store_session(facts)")},
)
violation(
    "IN-IDEM-02",
    2,
    "A start event is published for every accepted POST.",
    lua={"accept": accepting("publish(facts.event)")},
)


class OtherKey(Acceptance):
    """Adds to the key what does not belong there."""

    def added(self, call: Call) -> str:
        raise NotImplementedError

    def keys_of(self, call: Call) -> tuple[str, list[str]]:
        _, candidates = super().keys_of(call)
        mixed = [hashlib.sha256((key + self.added(call)).encode()).hexdigest() for key in candidates]
        return mixed[0], mixed


@violates("IN-IDEM-03", 1, "The principal or its token is mixed into the key.")
class OfThePrincipal(OtherKey):
    def added(self, call: Call) -> str:
        return call.principal.text if call.principal else ""


@violates("IN-IDEM-03", 2, "The key is taken over the whole request body.")
class OfTheBody(OtherKey):
    def added(self, call: Call) -> str:
        return json.dumps(call.body, sort_keys=True)


@violates("IN-IDEM-03", 3, "A key sent by the client replaces the computed one.")
class OfTheClient(Acceptance):
    def keys_of(self, call: Call) -> tuple[str, list[str]]:
        given = call.body.get("idempotencyKey") or call.request.headers.get("Idempotency-Key")
        key = hashlib.sha256(str(given).encode()).hexdigest()
        return (key, [key]) if given else super().keys_of(call)


violation(
    "IN-IDEM-04",
    1,
    "The mapping is stored with a fixed expiry of one lease_ttl, so a later repeat makes a session that is "
    "then rejected busy.",
    lua={
        "store_mapping": """
local key = mapping_key(facts.session.idemKey)
write('SET', key, facts.session.sessionId, 'PX', whole(limits.leaseTtlMs))""",
        "keep_mapping": "return",
    },
)


@violates("IN-IDEM-04", 2, "The bucket is derived from wall-clock seconds.")
class ByTheClock(IdemKeys):
    def bucket(self, intent: Intent) -> str:
        return super().bucket(intent) if intent.vod else str(int(time.time()))


violation(
    "IN-IDEM-05",
    1,
    "The key keeps returning the stopped session.",
    lua={"is_live": f"return session.state == 'STOPPED' or {LIVE}", "drop_mapping": "return"},
)
violation(
    "IN-IDEM-05",
    2,
    "The key keeps returning the session that was rejected busy.",
    lua={"is_live": f"return session.reason == 'R_LEASE_BUSY' or {LIVE}", "drop_mapping": "return"},
)
