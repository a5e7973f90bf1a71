-- Gathers log messages in their order, each with its acknowledgement in the same step: it is stored once.
local function apply_logs(facts)
  if not owns(facts.jobId, facts.owner, facts.epoch) then
    return {owned = false}
  end
  for _, entry in ipairs(facts.entries) do
    if acknowledge(facts, entry.id) and entry.log ~= '' then
      keep_log(facts.jobId, entry.log)
    end
  end
  return {owned = true}
end
