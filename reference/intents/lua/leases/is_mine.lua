local function is_mine(holder, owner)
  return holder == owner
end
