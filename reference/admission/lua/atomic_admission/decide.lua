-- Decides one attempt: reads everything shared, runs the checks in order of precedence, records a failure and
-- writes what the verdict makes, all in one run. Every check returns its verdict, or nil to go on.
local function decide(facts)
  local steps = {
    rate_lock = rate_lock, character_given = character_given, character_known = character_known,
    character_owned = character_owned, not_suspended = not_suspended, build_current = build_current,
    instance_known = instance_known, in_service = in_service,
    existing_session = existing_session, already_waiting = already_waiting, drain = drain,
    free_slot = free_slot, queue_cap = queue_cap, enqueue = enqueue,
    reconnection_token = reconnection_token, old_socket = old_socket, resume = resume,
    replacement_token = replacement_token, swap = swap,
  }
  if too_late(facts) then
    return {outcome = 'late'}
  end
  for _, step in ipairs(order_of(facts)) do
    local verdict = steps[step](facts)
    if verdict then
      return verdict
    end
  end
end
