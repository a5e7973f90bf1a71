local function read_session(facts)
  return {session = load_session(facts.sessionId)}
end
