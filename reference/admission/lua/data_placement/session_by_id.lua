local function session_by_id(sessionId)
  return load(key('session:data', sessionId))
end
