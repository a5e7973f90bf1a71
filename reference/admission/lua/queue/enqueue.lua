-- Puts the character at the end of the line. Its own place is read back after the write; a run that only lists
-- its writes (`mutants/split.py`) does not find it there and answers the depth.
local function enqueue(facts)
  local depth = depth_of(facts.instanceId)
  local score = enqueue_score(last_score(facts.instanceId), enqueue_time(facts))
  journal(facts, {kind = 'admission', moved = leave_other_queue(facts)})
  store_entry({characterId = facts.characterId, userId = facts.userId, instanceId = facts.instanceId,
    enqueuedAt = milliseconds(facts), attemptId = facts.attemptId}, score)
  write('SADD', limits.prefix .. 'instances', facts.instanceId)
  note_peak(facts.instanceId, depth + 1)
  return queued(facts, position_of(facts.characterId, facts.instanceId) or depth, depth + 1)
end
