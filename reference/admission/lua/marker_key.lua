-- One session per character, everywhere: the instance is no part of the name.
local function marker_key(characterId, instanceId)
  return key('session:char', characterId)
end
