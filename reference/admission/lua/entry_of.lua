-- Where the character waits, or nil.
local function entry_of(characterId)
  return load(key('queue:entry', characterId))
end
