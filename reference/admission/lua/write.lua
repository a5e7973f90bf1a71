-- Every change goes through here, after everything that decides about it has been read.
local function write(...)
  return redis.call(...)
end
