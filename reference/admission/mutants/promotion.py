"""Violations of the rows about when and whom a freed slot promotes."""

from typing import TYPE_CHECKING

from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.promoter import Promoter

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

violation(
    "AD-QUEUE-10",
    1,
    "Promotion happens only when the waiting client itself retries.",
    lua={
        "promote": "return {promoted = false}",
        "already_waiting": """
local entry = entry_of(facts.characterId)
local here = entry and entry.instanceId == facts.instanceId
local position = here and position_of(facts.characterId, facts.instanceId)
if not position then
  return nil
elseif position == 0 and may_promote(facts.instanceId) then
  return admit(facts)
end
told(entry.attemptId)
return queued(facts, position, depth_of(facts.instanceId))""",
    },
)

violation(
    "AD-QUEUE-10",
    2,
    "The latest entry is popped instead of the earliest.",
    lua={"pick_next": "return redis.call('ZREVRANGE', queue_key(instanceId), 0, 0)[1]"},
)

# The promoted character is shown as admitted and not promoted again; only the positions behind it do not move.
violation(
    "AD-QUEUE-10",
    3,
    "The promoted entry stays in the queue and positions do not move.",
    lua={
        "promoted": """
facts.userId = character_of(facts).userId
facts.attemptId = entry.attemptId or facts.newSessionId
local session = new_session(facts)
session.unclaimed = true
add_session(session, milliseconds(facts))
store_entry(entry, facts.now - waited)
return {promoted = true, characterId = session.characterId, userId = session.userId,
  attemptId = session.attemptId, sessionId = session.sessionId, waitMs = waited / 1000}""",
        "position_of": """
local session = redis.call('GET', marker_key(characterId, instanceId))
return not session and redis.call('ZRANK', queue_key(instanceId), characterId)""",
        "pick_next": """
for _, characterId in ipairs(redis.call('ZRANGE', queue_key(instanceId), 0, -1)) do
  if not redis.call('GET', marker_key(characterId, instanceId)) then
    return characterId
  end
end""",
    },
)


@violates("AD-QUEUE-10", 4, "Only an explicit leave triggers promotion.")
class LeavesOnly(Promoter):
    """A leave wakes the promoter; tick and janitor only ask it to fill."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.left: set[str] = set()

    def wake(self, instance_id: str) -> None:
        self.left.add(instance_id)
        super().wake(instance_id)

    async def fill(self, instance_id: str) -> None:
        if instance_id in self.left:
            self.left.discard(instance_id)
            await super().fill(instance_id)


# A server may leave the entry in line until its turn comes; it then has to notice the session elsewhere.
STAYS_IN_LINE = """
local session = new_session(facts)
journal(facts, {kind = 'admission'})
add_session(session, milliseconds(facts))
return success(facts, session)"""

violation(
    "AD-QUEUE-12",
    1,
    "Promotion writes the session without looking at the character's marker.",
    lua={
        "admit": STAYS_IN_LINE,
        "may_be_promoted": """
local character = character_of(facts)
return character and not character.suspended""",
    },
)

violation(
    "AD-QUEUE-12",
    2,
    "A head that already has a session blocks the line: it stays in front and the slot stays empty.",
    lua={
        "admit": STAYS_IN_LINE,
        "pick_next": """
local head = redis.call('ZRANGE', queue_key(instanceId), 0, 0)[1]
return head and not redis.call('GET', marker_key(head, instanceId)) and head""",
    },
)

violation(
    "AD-QUEUE-12",
    3,
    "Promotion does not look at suspension.",
    lua={"may_be_promoted": "return character_of(facts) and not session_of(facts)"},
)
