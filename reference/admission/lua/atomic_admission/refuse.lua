-- Returns a refusal with its one reason. A refusal that counts is recorded in the same step.
local function refuse(facts, reason, verdict)
  verdict = verdict or {}
  verdict.outcome = 'failed'
  verdict.reason = reason
  return allowance(facts, verdict, used_up(facts, reason))
end
