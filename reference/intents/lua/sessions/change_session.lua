-- Writes fields of a record and renews its life: a record stays readable for a day after its last change.
local function change_session(id, fields, facts)
  local words = {'updatedAtMs', whole(milliseconds(facts))}
  for name, value in pairs(fields) do
    words[#words + 1], words[#words + 2] = name, value
  end
  write('HSET', session_key(id), unpack(words))
  write('PEXPIRE', session_key(id), whole(limits.sessionTtlMs))
end
