local function mapping_key(key)
  return 'idem:' .. key
end
