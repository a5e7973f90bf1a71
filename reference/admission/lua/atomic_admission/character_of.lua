-- Returns owner and suspension of the character, read once per run, or nil when it is unknown.
local function character_of(facts)
  if facts.character == nil then
    local stored = redis.call('HMGET', key('character', facts.characterId), 'userId', 'suspended')
    facts.character = stored[1] and {userId = stored[1], suspended = stored[2] == '1'} or false
  end
  return facts.character or nil
end
