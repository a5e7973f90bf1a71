-- Withdraws a replacement offer. Ownership is checked first, so that nobody else can cancel it.
local function cancel(facts)
  local offer = load(key('replacement', facts.replaceToken))
  if not offer or offer.instanceId ~= facts.instanceId then
    return {cancelled = false}
  end
  if not owns(facts, offer.userId) then
    return {cancelled = false, foreign = true, characterId = offer.characterId}
  end
  consume_offer(facts)
  return {cancelled = true}
end
