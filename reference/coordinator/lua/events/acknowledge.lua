-- Takes an entry off the queue, and tells whether it was still there: what is not has taken effect before.
local function acknowledge(facts, id)
  return write('XACK', facts.stream, group_of(facts.owner), id) == 1
end
