-- Returns why a socket may not have the session, or nil. A session in grace is resumed with its token only;
-- its id alone must not open it.
local function attach_refusal(facts, session)
  if not session or session.instanceId ~= facts.instanceId then
    return 'unknown_session'
  elseif not owns(facts, session.userId) then
    return 'not_owner'
  elseif session.socket then
    return 'has_socket'
  elseif session.state ~= 'active' then
    return 'token_needed'
  end
end
