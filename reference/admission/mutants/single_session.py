"""Violations of the row that allows one session per character, everywhere."""

import asyncio
from typing import TYPE_CHECKING, ClassVar

from holdfast.reference.admission.mutants.rescripted import Lua, Rescripted
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.verdicts import Record, Verdict

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

# Like a confirmed replacement, but nobody was asked.
violation(
    "AD-ADMIT-09",
    1,
    "The second attempt silently takes over.",
    lua={
        "existing_session": """
local old = session_of(facts)
if not old then
  return nil
end
local session = new_session(facts)
journal(facts, {kind = 'admission'})
end_session(old, 'replace', milliseconds(facts))
add_session(session, milliseconds(facts))
local verdict = success(facts, session)
verdict.replaced = {sessionId = old.sessionId, socket = old.socket}
return verdict"""
    },
)


@violates("AD-ADMIT-09", 2, "Existence check and write are separate commands, so two attempts pass.")
class CheckThenWrite(Rescripted):
    lua: ClassVar[Lua] = {
        "existing_session": """
local session = facts.marked and session_by_id(facts.marked)
if not session then
  return nil
end
told(session.attemptId)
local verdict = refuse(facts, 'ALREADY_IN_SESSION')
if offers_replacement(facts, session) then
  verdict.replacementToken = offer_replacement(facts, session)
end
return verdict"""
    }

    async def decide(self, facts: Record) -> Verdict:
        marked = await self.node.link.call("GET", self.name("session:char", facts["characterId"]))
        return await super().decide(facts | ({"marked": marked.decode()} if marked else {}))


@violates("AD-ADMIT-09", 3, "A mutex per process protects the check.")
class MutexPerProcess(CheckThenWrite):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.mutex = asyncio.Lock()

    async def decide(self, facts: Record) -> Verdict:
        async with self.mutex:
            return await super().decide(facts)


violation(
    "AD-ADMIT-09",
    4,
    "The active marker is keyed by instance and character.",
    lua={"marker_key": "return key('session:char', instanceId .. ':' .. characterId)"},
)
