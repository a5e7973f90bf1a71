local function store_session(session)
  write('SET', key('session:data', session.sessionId), cjson.encode(session))
end
