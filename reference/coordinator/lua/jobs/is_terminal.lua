local function is_terminal(status)
  return status == 'Completed' or status == 'Failed' or status == 'TimedOut' or status == 'Cancelled'
end
