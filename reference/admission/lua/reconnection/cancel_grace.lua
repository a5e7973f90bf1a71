local function cancel_grace(session)
  write('ZREM', grace_key(), session.sessionId)
end
