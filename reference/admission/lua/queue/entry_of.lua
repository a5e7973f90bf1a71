-- Returns the queue entry of the character, or nil. A character waits on one instance at a time.
local function entry_of(characterId)
  return load(key('queue:entry', characterId))
end
