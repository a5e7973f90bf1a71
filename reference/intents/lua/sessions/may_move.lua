local function may_move(session, facts)
  if facts.to == 'READY' and session.stopRequestedAtMs then
    return false
  end
  for _, state in ipairs(facts.from) do
    if session.state == state then
      return true
    end
  end
  return false
end
