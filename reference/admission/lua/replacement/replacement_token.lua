local function replacement_token(facts)
  local offer = load(key('replacement', facts.replaceToken))
  local session = session_of(facts)
  if not offer or not session or not offer_fits(facts, offer, session) then
    return refuse(facts, 'INVALID_REPLACE_TOKEN')
  end
  facts.session = session
  facts.offer = offer
end
