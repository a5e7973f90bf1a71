-- Store.DeleteAllLeases (5.3 B): deletes every lease, whoever owns it, and nothing else.
local function flush_leases()
  local cursor, count = '0', 0
  repeat
    local page = redis.call('SCAN', cursor, 'MATCH', flushed_keys(), 'COUNT', 1000)
    cursor = page[1]
    for _, lease in ipairs(page[2]) do
      count = count + write('UNLINK', lease)
    end
  until cursor == '0'
  return {count = count}
end
