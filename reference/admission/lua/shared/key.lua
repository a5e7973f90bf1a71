local function key(name, id)
  return limits.prefix .. name .. ':' .. id
end
