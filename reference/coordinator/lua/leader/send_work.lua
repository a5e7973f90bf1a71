-- Sends a job to the workers of its queue; it waits there for one.
local function send_work(facts)
  publish(facts.dispatchStream, facts.dispatchPayload)
end
