local function is_terminal(state)
  return state == 'STOPPED' or state == 'FAILED' or state == 'CANCELLED'
end
