-- Compares the owner in the record of a job with a node.
local function has_owner(id, owner, node)
  return owner == node
end
