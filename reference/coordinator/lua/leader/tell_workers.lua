local function tell_workers(facts)
  publish(facts.stream, facts.payload)
end
