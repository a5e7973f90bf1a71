local function build_current(facts)
  if not facts.buildOk then
    return refuse(facts, 'VERSION_MISMATCH')
  end
end
