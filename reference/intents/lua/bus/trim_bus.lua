-- Cuts the bus once it is longer than it should be: only events that the group has read and acknowledged are dropped.
local function trim_bus()
  if redis.call('XLEN', limits.bus) <= limits.busLength then
    return {trimmed = 0}
  end
  local first = redis.call('XPENDING', limits.bus, limits.group)[2] or last_delivered()
  return {trimmed = write('XTRIM', limits.bus, 'MINID', first)}
end
