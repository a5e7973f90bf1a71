-- Takes back what an attempt did whose client was told that nothing happened.
local function undo(facts)
  forget_failure(facts)
  local before = load(key('undo', facts.attemptId))
  if not before then
    return {undone = false}
  end
  write('DEL', key('undo', facts.attemptId))
  local by_kind = {admission = undo_admission, resume = undo_resume, swap = undo_swap}
  by_kind[before.kind](facts, before)
  return {undone = true}
end
