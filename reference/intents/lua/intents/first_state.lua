local function first_state()
  return 'NEW'
end
