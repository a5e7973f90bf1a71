"""Violations of the rows about whom and what the limiter counts."""

from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.mutants.table import violates, violation

violation(
    "AD-RATE-04",
    1,
    "Every attempt is counted.",
    lua={"used_up": "return record_failure(facts)"},
)


def _keyed_by(subject: str) -> dict[str, str]:
    """Returns bodies that name both records of the limiter after something else than the user."""
    return {
        "window_key": f"return key('ratelimit:window', {subject})",
        "lock_key": f"return key('ratelimit:lock', {subject})",
    }


violation("AD-RATE-04", 2, "The limiter is keyed by character id.", lua=_keyed_by("facts.characterId"))

# The address is a constant, because mutants are called from this machine only.
violation("AD-RATE-04", 3, "The limiter is keyed by client address.", lua=_keyed_by("'127.0.0.1'"))

# The node's name in the key stands for its memory: no other node finds the record.
violation(
    "AD-RATE-04",
    4,
    "The limiter lives in process memory of each node.",
    lua=_keyed_by("limits.node .. ':' .. facts.userId"),
)

violation(
    "AD-RATE-04",
    5,
    "The window key contains the instance id.",
    lua={"window_key": "return key('ratelimit:window', facts.instanceId .. ':' .. facts.userId)"},
)


class RecordedLater(Split):
    """Only what the limiter writes comes in a later call; sessions and queue stay atomic."""

    record = f"""
if not string.find(select(2, ...), 'ratelimit:', 1, true) then
  return redis.call(...)
end
{RECORD}"""


@violates(
    "AD-RATE-05",
    1,
    "The lock is checked first and the failure recorded in a later command, so all 50 pass.",
)
class CheckThenRecord(RecordedLater):
    split = ("decide",)


@violates("AD-RATE-05", 2, "A mutex per process guards the limiter, so each node lets its own 5 through.")
class MutexPerProcess(RecordedLater):
    mutex = True
