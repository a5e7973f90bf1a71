-- A refusal with its one reason; judged and recorded in the same step.
local function refuse(facts, reason, verdict)
  verdict = verdict or {}
  verdict.outcome = 'failed'
  verdict.reason = reason
  local count = limits.counted[reason] and record_failure(facts) or failures(facts)
  return allowance(facts, verdict, count)
end
