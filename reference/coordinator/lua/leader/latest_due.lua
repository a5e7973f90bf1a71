local function latest_due(at)
  return whole(at)
end
