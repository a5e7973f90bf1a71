local function is_overdue(session, facts)
  return tonumber(session.leaseExpiresAtMs or 0) <= milliseconds(facts)
end
