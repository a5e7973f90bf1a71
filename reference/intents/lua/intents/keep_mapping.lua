-- Renews the life of a mapping: a running session must never lose it.
local function keep_mapping(session)
  write('PEXPIRE', mapping_key(session.idemKey), whole(limits.idemTtlMs))
end
