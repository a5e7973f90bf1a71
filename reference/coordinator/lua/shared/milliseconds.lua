local function milliseconds(facts)
  return math.floor(facts.now / 1000)
end
