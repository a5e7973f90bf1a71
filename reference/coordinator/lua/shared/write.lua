-- Makes a change. Every change goes through here, so that `mutants/split.py` can list the writes of a run instead of
-- making them.
local function write(...)
  return redis.call(...)
end
