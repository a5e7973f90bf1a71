"""Violations of the rate limiting rows."""

import math
from typing import ClassVar

from aiohttp import web

from holdfast.reference.admission.attempts import Attempt
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.mutants.registry import violates, violation
from holdfast.reference.admission.mutants.split import RECORD, Split
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.verdicts import Verdict

violation(
    "AD-RATE-01",
    1,
    "The lock is set only by the sixth failure.",
    lua={"locks": "return count > limits.rateFailures"},
)

violation(
    "AD-RATE-01",
    2,
    "The lock ends when the oldest failure leaves the window.",
    lua={
        "set_lock": """
local oldest = redis.call('ZRANGE', window_key(facts), 0, 0, 'WITHSCORES')[2]
local until_ms = string.format('%.0f', oldest + limits.rateWindowMs)
write('SET', lock_key(facts), until_ms, 'PX', until_ms - milliseconds(facts))"""
    },
)

violation(
    "AD-RATE-01",
    3,
    "Each throttled attempt restarts the lock.",
    lua={
        "lock_left": """
if redis.call('EXISTS', lock_key(facts)) == 1 then
  set_lock(facts)
  return limits.rateLockMs
end"""
    },
)

violation(
    "AD-RATE-01",
    4,
    "Lock and window keys are written without expiry.",
    lua={
        "add_failure": "write('ZADD', window_key(facts), milliseconds(facts), failure_member(facts))",
        "set_lock": "write('SET', lock_key(facts), string.format('%.0f', milliseconds(facts) + limits.rateLockMs))",
        "lock_left": """
local left = (redis.call('GET', lock_key(facts)) or 0) - milliseconds(facts)
return left > 0 and left or nil""",
    },
)


@violates("AD-RATE-02", 1, "Remaining attempts are missing or always show the limit.")
class AlwaysTheLimit(Http):
    def answered(self, attempt: Attempt, verdict: Verdict) -> web.Response:
        if "remaining" in verdict:
            verdict["remaining"] = self.node.settings.rate_failures
        return super().answered(attempt, verdict)


@violates("AD-RATE-02", 2, "The lock time is a constant 60.")
class ConstantLockTime(Rules):
    def retry_after(self, reason: str, lock_ms: float | None = None) -> int | None:
        if lock_ms is not None:
            return math.ceil(self.settings.rate_lock)
        return super().retry_after(reason, lock_ms)


@violates("AD-RATE-02", 3, "The Retry-After header is missing or in milliseconds.")
class HeaderInMilliseconds(Http):
    def answered(self, attempt: Attempt, verdict: Verdict) -> web.Response:
        answer = super().answered(attempt, verdict)
        if "lockMs" in verdict:
            answer.headers["Retry-After"] = str(round(verdict["lockMs"]))
        return answer


violation(
    "AD-RATE-03",
    1,
    "One counter key per clock minute.",
    lua={
        "failures": """
local now_ms = milliseconds(facts)
return redis.call('ZCOUNT', window_key(facts), now_ms - now_ms % limits.rateWindowMs, '+inf')"""
    },
    # Whoever lets failures add up may do so over a border: the first for certain, the others when they are unlucky.
    also=("AD-RATE-01", "AD-RATE-02", "AD-RATE-04", "AD-RATE-05", "AD-RATE-06"),
)

violation(
    "AD-RATE-03",
    2,
    "The whole window is cleared 60 s after its first failure.",
    lua={
        "add_failure": """
local first = failures(facts) == 0
write('ZADD', window_key(facts), milliseconds(facts), failure_member(facts))
if first then
  write('PEXPIRE', window_key(facts), limits.rateWindowMs)
end"""
    },
)

violation(
    "AD-RATE-03",
    3,
    "The count is reset only by a success.",
    lua={
        "failures": "return redis.call('ZCARD', window_key(facts))",
        "add_failure": "write('ZADD', window_key(facts), milliseconds(facts), failure_member(facts))",
        "success": """
write('DEL', window_key(facts))
return allowance(facts, {outcome = 'success', sessionId = session.sessionId,
  reconnectionToken = session.reconnectionToken}, 0)""",
    },
)

violation(
    "AD-RATE-03",
    4,
    "Failures are set members named by the second, so five in one second count as one.",
    lua={"failure_member": "return tostring(math.floor(facts.now / 1000000))"},
)

violation(
    "AD-RATE-04",
    1,
    "Every attempt is counted.",
    lua={"used_up": "return record_failure(facts)"},
)


def _keyed_by(subject: str) -> dict[str, str]:
    """Both records of the limiter under another name than the user's."""
    return {
        "window_key": f"return key('ratelimit:window', {subject})",
        "lock_key": f"return key('ratelimit:lock', {subject})",
    }


violation("AD-RATE-04", 2, "The limiter is keyed by character id.", lua=_keyed_by("facts.characterId"))

# The address is written down instead of read, since whoever tries a mutant does so from this machine.
violation("AD-RATE-04", 3, "The limiter is keyed by client address.", lua=_keyed_by("'127.0.0.1'"))

# Nodes that share nothing: what another one has counted is as far away as in its memory.
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
    """Only what the limiter writes comes later; sessions and queue are as atomic as ever."""

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


_ACTS = ("free_slot", "queue_cap", "enqueue", "old_socket", "resume", "swap")


def _lock_last(steps: tuple[str, ...]) -> tuple[str, ...]:
    checks = (step for step in steps if step not in (*_ACTS, "rate_lock"))
    return (*checks, "rate_lock", *(step for step in steps if step in _ACTS))


@violates("AD-RATE-06", 1, "The lock is looked at last, so a locked user still learns VERSION_MISMATCH.")
class LockLast(Rules):
    precedence: ClassVar[dict[str, tuple[str, ...]]] = {
        kind: _lock_last(steps) for kind, steps in Rules.precedence.items()
    }


violation(
    "AD-RATE-06",
    2,
    "Throttled attempts on a full instance are still enqueued.",
    lua={
        "lock_left": """
local left = redis.call('PTTL', lock_key(facts))
local newcomer = character_of(facts) and not session_of(facts) and not entry_of(facts.characterId)
if left > 0 and newcomer and not has_room(facts.instanceId) then
  enqueue(facts)
end
return left > 0 and left or nil"""
    },
)
