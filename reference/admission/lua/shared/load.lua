-- Returns a stored JSON record, or nil.
local function load(name)
  local text = redis.call('GET', name)
  return text and cjson.decode(text) or nil
end
