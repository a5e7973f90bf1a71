-- Returns the bindings of the presented token while it is alive in Redis time, or nil.
local function token_record(facts)
  local record = load(token_key(facts.reconnectionToken))
  if record and record.expiresAt and record.expiresAt <= milliseconds(facts) then
    return nil
  end
  return record
end
