-- Ends the old session and makes the new one within one run, so that no waiting character is promoted into the
-- slot in between.
local function swap(facts)
  local old = facts.session
  local now_ms = milliseconds(facts)
  local offer_name = key('replacement', facts.replaceToken)
  journal(facts, {kind = 'swap', session = old, offer = facts.offer, token = facts.replaceToken,
    offerExpiresAt = now_ms + redis.call('PTTL', offer_name)})
  consume_offer(facts)
  end_replaced(old, now_ms)
  local session = new_session(facts)
  session.replacementOf = old.sessionId
  add_session(session, now_ms)
  local verdict = success(facts, session)
  verdict.replaced = {sessionId = old.sessionId, socket = old.socket}
  return verdict
end
