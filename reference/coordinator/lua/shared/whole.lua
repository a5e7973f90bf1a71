-- Returns a number as Redis takes it: Lua would write a long one with an exponent.
local function whole(number)
  return string.format('%.0f', number)
end
