-- Takes back the failure of an attempt that ended as timeout or outage, and the lock if the other failures alone
-- do not set it.
local function forget_failure(facts)
  local window = window_key(facts)
  if not redis.call('ZSCORE', window, failure_member(facts)) then
    return
  end
  local others = failures(facts) - 1
  write('ZREM', window, failure_member(facts))
  if not locks(others) then
    write('DEL', lock_key(facts))
  end
end
