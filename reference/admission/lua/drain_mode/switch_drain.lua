local function switch_drain(facts)
  local name = drain_key(facts.instanceId)
  local was_enabled = redis.call('EXISTS', name) == 1
  if not facts.enabled then
    write('DEL', name)
    return {wasEnabled = was_enabled}
  end
  local now_ms = milliseconds(facts)
  write('SET', name, cjson.encode({enabled = true, reason = facts.reason, enabledAt = now_ms}))
  write('SADD', limits.prefix .. 'instances', facts.instanceId)
  if facts.ttlMs then
    write('PEXPIRE', name, facts.ttlMs)
  end
  return {wasEnabled = was_enabled, expiresAt = facts.ttlMs and now_ms + facts.ttlMs}
end
