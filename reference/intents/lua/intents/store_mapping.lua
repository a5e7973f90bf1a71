-- Writes the mapping under the current secret only; its life is renewed for as long as the session runs.
local function store_mapping(facts)
  write('SET', mapping_key(facts.session.idemKey), facts.session.sessionId, 'PX', whole(limits.idemTtlMs))
end
