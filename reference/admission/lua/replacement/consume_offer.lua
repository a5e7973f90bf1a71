local function consume_offer(facts)
  write('DEL', key('replacement', facts.replaceToken))
end
