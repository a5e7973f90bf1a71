local function messages(entries)
  local found = {}
  for _, entry in ipairs(entries) do
    found[#found + 1] = entry and message_of(entry) or nil
  end
  return found
end
