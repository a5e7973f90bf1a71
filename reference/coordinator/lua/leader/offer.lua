-- Offers the ownership of a dispatched job.
local function offer(facts)
  publish(facts.assignedStream, facts.assignedPayload)
end
