local function flushed_keys()
  return 'lease:*'
end
