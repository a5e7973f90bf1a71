-- Names the marker of a character's one session. The instance is no part of the name, because a character has
-- one session over all instances.
local function marker_key(characterId, instanceId)
  return key('session:char', characterId)
end
