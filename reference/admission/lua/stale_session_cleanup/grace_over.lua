local function grace_over(session, now_ms)
  return session.state == 'grace' and session.graceExpiresAt <= now_ms
end
