"""Violations of the row about the rolling window."""

from holdfast.reference.admission.mutants.table import violation

violation(
    "AD-RATE-03",
    1,
    "One counter key per clock minute.",
    lua={
        "failures": """
local now_ms = milliseconds(facts)
return redis.call('ZCOUNT', window_key(facts), now_ms - now_ms % limits.rateWindowMs, '+inf')"""
    },
    # Checks of these rows let failures add up and may cross a border: that of AD-RATE-01 always, the others by chance.
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
