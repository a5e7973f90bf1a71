local function session_key(id)
  return 'session:' .. id
end
