-- Makes every change of a script.
local function write(...)
  return redis.call(...)
end
