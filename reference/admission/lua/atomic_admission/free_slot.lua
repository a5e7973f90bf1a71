local function free_slot(facts)
  if may_enter(facts) then
    return admit(facts)
  end
end
