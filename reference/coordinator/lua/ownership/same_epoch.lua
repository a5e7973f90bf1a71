local function same_epoch(stored, known)
  return tonumber(stored) == known
end
