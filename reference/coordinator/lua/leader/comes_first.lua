local function comes_first(one, other)
  local first, second = tonumber(one.priority) or 0, tonumber(other.priority) or 0
  if first ~= second then
    return first > second
  end
  return (one.createdAt or '') .. one.jobId < (other.createdAt or '') .. other.jobId
end
