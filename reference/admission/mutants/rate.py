"""Violations of the rate limiting rows."""

from holdfast.reference.admission.mutants.registry import violation

violation(
    "AD-RATE-03",
    1,
    "One counter key per clock minute.",
    lua={
        "window_key": """
local period = math.floor(milliseconds(facts) / limits.rateWindowMs)
return key('ratelimit:window', facts.userId .. ':' .. period)"""
    },
)

violation(
    "AD-RATE-03",
    4,
    "Failures are set members named by the second, so five in one second count as one.",
    lua={"failure_member": "return tostring(math.floor(facts.now / 1000000))"},
)
