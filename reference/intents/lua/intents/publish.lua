-- Emits one event to the bus (3.1 step 5). No trimming here: it could drop what no worker has read yet.
local function publish(event)
  write('XADD', limits.bus, '*', 'type', event.type, 'data', event.data)
end
