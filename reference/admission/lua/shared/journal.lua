-- Stores what `undo` needs if the answer of this attempt does not reach its client in time.
local function journal(facts, before)
  write('SET', key('undo', facts.attemptId), cjson.encode(before), 'PX', limits.journalMs)
end
