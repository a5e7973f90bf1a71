"""Violations of the rows about the limiter's lock: when it falls, how long it holds, what it answers."""

import math
from typing import ClassVar

from aiohttp import web

from holdfast.reference.admission.attempts import Attempt
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.mutants.table import violates, violation
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
