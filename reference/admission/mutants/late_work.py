"""Violations of the row about what a timed-out attempt leaves behind."""

from typing import TYPE_CHECKING

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.verdicts import Verdict

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

# Both guards are off: the script does not look at the deadline, and the undo leaves one thing in place.
NEVER_LATE = "return facts.kind ~= '{kind}' and facts.now / 1000 > facts.deadlineMs"

violation(
    "AD-TIME-05",
    1,
    "The losing branch goes on and admits the character.",
    lua={
        "too_late": NEVER_LATE.format(kind="admit"),
        "undo_admission": """
local entry = entry_of(facts.characterId)
if entry and entry.attemptId == facts.attemptId then
  remove_entry(entry)
end
if before.moved then
  store_entry(before.moved.entry, before.moved.score)
end""",
    },
)

violation(
    "AD-TIME-05",
    2,
    "The losing branch goes on and leaves a queue entry.",
    lua={
        "too_late": NEVER_LATE.format(kind="admit"),
        "undo_admission": """
local session = session_of(facts)
if session and session.attemptId == facts.attemptId then
  end_session(session, 'undone', milliseconds(facts))
end""",
    },
)

violation(
    "AD-TIME-05",
    3,
    "A late reconnect rotates the token although timeout was reported.",
    lua={"too_late": NEVER_LATE.format(kind="reconnect"), "undo_resume": "return nil"},
)


@violates("AD-TIME-05", 4, "An in-progress marker of the timed-out attempt blocks the character.")
class InProgress(Attempts):
    """The deadline cancels the coroutine before it takes the marker off."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.in_progress: set[str] = set()

    async def decide(self, attempt: Attempt) -> Verdict:
        if attempt.character_id in self.in_progress:
            return {"outcome": "failed", "reason": "ALREADY_IN_SESSION"}
        self.in_progress.add(attempt.character_id)
        verdict = await super().decide(attempt)
        self.in_progress.remove(attempt.character_id)
        return verdict
