-- Idempotency, persist, publish (3.1 steps 3 to 5), in one run: of a herd exactly one finds no session and makes one.
-- The event goes out first, because it is the write that can be refused (the bus may be no stream) and nothing is
-- rolled back. Nobody sees the order from outside: all of a run is there at once.
local function accept(facts)
  local known = known_session(facts)
  if known then
    return {made = false, sessionId = known.sessionId, correlationId = known.correlationId}
  end
  publish(facts.event)
  store_session(facts)
  store_mapping(facts)
  return {made = true, sessionId = facts.session.sessionId, correlationId = facts.session.correlationId}
end
