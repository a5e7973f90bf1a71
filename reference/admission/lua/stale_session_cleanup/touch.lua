-- Records a heartbeat. The record keeps it for readers; the janitor judges by the heartbeat's own key.
local function touch(session, now_ms)
  session.lastHeartbeatAt = now_ms
  store_session(session)
  write('SET', beat_key(session), string.format('%.0f', now_ms), 'PX', limits.beatKeyMs)
end
