-- Compares the ids of two entries.
local function is_newer(id, than)
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  local last_ms, last_seq = string.match(than or '', '(%d+)-(%d+)')
  if not last_ms or tonumber(ms) ~= tonumber(last_ms) then
    return not last_ms or tonumber(ms) > tonumber(last_ms)
  end
  return tonumber(seq) > tonumber(last_seq)
end
