-- Returns an entry as its id and the text in its field `data`.
local function message_of(entry)
  local fields = entry[2] or {}
  for i = 1, #fields, 2 do
    if fields[i] == 'data' then
      return {entry[1], fields[i + 1]}
    end
  end
  return {entry[1], ''}
end
