local function owner_key(node)
  return limits.store .. 'owner:' .. node
end
