--- Lua for what a mutex does not need: readers, the order of waiters, a name that stays closed for a
--- while, and operators' calls.
---
--- Readers are members of a sorted set by the end of each. The lock's own key is then a marker that
--- lives as long as the last of them. The set counts only together with it; a client that makes a
--- marker empties the set first.
---  hf:s    readers, in the set; '!' before a value: broken, '=': released before min_hold
---  hf:m    no holder: an exclusive holder released before the end of min_hold
---
--- A waiter leaves a mark, "TICKET MODE OWNER CHANNEL", in a second sorted set, by the time at which
--- it expires. Tickets have 16 digits and are the same at all nodes, so marks compare as text. In the
--- same set stands "!VALUE" for each value that was broken, as long as a request for it may still
--- arrive: it takes nothing. A third set has "MODE MARK" for each mark, all with the same score, so
--- that the first one of a mode is found without a look at the others. It may have too much, since
--- marks expire, and too little, since older clients know nothing of it and have no channel.
---
--- A request that makes room tells the waiters whose turn it is, on their channels. That is a hint: they ask.
---
--- After a reader the state is "1:HIGHEST::EXCLUSIVE": the highest token, and the highest token of
--- an exclusive holder; what a mutex writes has both in one. A reader's token must be above the
--- second, an exclusive holder's above the first. The format is 2 while there are marks.

--- A reader of a free name without marks, before all else is defined: that takes a node as long as
--- the grant. KEYS and ARGV as for enter_units.
-- name: quick_reader
local function quick_reader(lock, state, hold, marks, value, px, deadline, token, mode)
  if mode ~= 'r' or token == '?' or now > tonumber(deadline) then return nil end
  if call('EXISTS', lock, hold, marks) ~= 0 then return nil end
  local exclusive, last = '0000000000000000', token
  local old = redis.pcall('GET', state)
  if type(old) == 'table' then return nil end
  if old then
    local highest, rest = string.match(old, '^1:(%d+):(.*)$')
    if not highest or #highest ~= 16 or highest > '9999000000000000' then return nil end
    exclusive = string.match(rest, '^:(%d+)$') or highest
    if exclusive >= token then return nil end
    if highest > token then last = highest end
  end
  local ends = string.format('%.0f', now + px)
  call('SET', lock, 'hf:s', 'PXAT', ends)
  call('ZADD', hold, ends, value)
  call('PEXPIREAT', hold, ends)
  call('SET', state, '1:' .. last .. '::' .. exclusive, 'PXAT', till(last, px))
  return 'g'
end
local got = quick_reader(KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
if got then return got end

--- The only reader leaves, and nobody waits. The marker lives as long as the last of them, so it is
--- there in time.
-- name: quick_leave
if ARGV[2] == '0' and ARGV[3] == '' and redis.pcall('GET', KEYS[1]) == 'hf:s' then
  local parts = redis.pcall('ZRANGE', KEYS[3], 0, 1)
  if parts[1] == ARGV[1] and not parts[2] and redis.pcall('EXISTS', KEYS[5]) == 0 then
    redis.call('DEL', KEYS[1], KEYS[3])
    return 1
  end
end

--- A mutex without a mark is given back, and nobody waits.
-- name: quick_give_back
local v = redis.pcall('GET', KEYS[1])
local left = v and 2 or 0
if v == ARGV[1] then left = redis.call('DEL', KEYS[1]) end
if redis.pcall('EXISTS', KEYS[2]) ~= 1 then return left end

-- name: units
local READERS, CLOSED, ZERO = 'hf:s', 'hf:m', '0000000000000000'
local lock, state, hold, marks, line
local function use(i)
  lock, state, hold, marks, line = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3], KEYS[i + 4]
end

local function int(n) return string.format('%.0f', n) end

local function look()                         -- what is in the lock's key; false: nothing
  local cur = redis.pcall('GET', lock)
  if cur ~= READERS then return cur end
  call('ZREMRANGEBYSCORE', hold, '-inf', int(now - 1))
  if call('ZCARD', hold) > 0 then return cur end
  call('DEL', lock)
  return false
end

local function measure()                      -- the key lives as long as the last of them
  local last = call('ZRANGE', hold, -1, -1, 'WITHSCORES')
  call('PEXPIREAT', lock, last[2])
  call('PEXPIREAT', hold, int(last[2] + 1))
end

local function join(cur, value, px)           -- becomes a reader
  local ends = int(now + px)
  if cur == READERS then
    call('ZADD', hold, ends, value)
    return measure()
  end
  call('DEL', hold)
  call('SET', lock, READERS, 'PXAT', ends)
  call('ZADD', hold, ends, value)
  call('PEXPIREAT', hold, ends)
end

local function part()                         -- the set has changed
  if call('ZCARD', hold) == 0 then call('DEL', lock) else measure() end
end

-- The state's format, the highest token, the highest one of an exclusive holder, and what is behind
-- the first; nothing: no state of ours.
local function read()
  local s = redis.pcall('GET', state)
  if not s then return '1', ZERO, ZERO, '' end
  if type(s) ~= 'string' then return nil end
  local form, last, rest = string.match(s, '^([12]):(%d+):(.*)$')
  if not form or #last ~= 16 or last > '9999000000000000' then return nil end
  return form, last, string.match(rest, '^:(%d+)$') or last, rest
end

local function earliest(mode)                 -- of the marks that have not expired
  while true do
    local m = call('ZRANGE', line, '[' .. mode .. ' ', '(' .. mode .. '!', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not m then return nil end
    local mark = string.sub(m, 3)
    local ends = call('ZSCORE', marks, mark)
    if ends and tonumber(ends) >= now then return mark end
    call('ZREM', line, m)
  end
end

local function say(mark)
  local owner, channel = string.match(mark, '^%d+ %a (%S+) (%S+)$')
  if channel then redis.pcall('PUBLISH', channel, owner) end
end

-- Tells the first waiter, or all readers before the first writer, when there is room beside `cur`,
-- or will be at a time that they do not know yet.
local function tell(cur)
  if cur and cur ~= READERS and cur ~= CLOSED then return end
  if call('EXISTS', line) == 0 then return end
  local w, r = earliest('w'), earliest('r')
  if r and not (w and w < r) then
    local last = w and '(r ' .. w or '(r!'
    for _, m in ipairs(call('ZRANGE', line, '[r ', last, 'BYLEX', 'LIMIT', 0, 256)) do say(string.sub(m, 3)) end
  elseif w and cur ~= READERS then
    say(w)
  end
end

-- name: marks
local function put(mark, window)              -- the keys live as long as the last of them
  local put = redis.pcall('ZADD', marks, int(now + window), mark)
  if type(put) == 'table' then return put end
  local last = int(call('ZRANGE', marks, -1, -1, 'WITHSCORES')[2] + 1)
  call('PEXPIREAT', marks, last)
  if string.sub(mark, 1, 1) == '!' then return end
  call('ZADD', line, 0, string.sub(mark, 18, 18) .. ' ' .. mark)
  call('PEXPIREAT', line, last)
end

local function drop(mark)
  redis.pcall('ZREM', marks, mark)
  redis.pcall('ZREM', line, string.sub(mark, 18, 18) .. ' ' .. mark)
end

local function settle(form, last, rest)       -- marks come and go: the format says so
  local wanted = call('EXISTS', marks) == 1 and '2' or '1'
  if wanted == form then return form end
  if call('EXISTS', state) == 1 then
    call('SET', state, wanted .. ':' .. last .. ':' .. rest, 'KEEPTTL')
  else
    call('SET', state, wanted .. ':' .. last .. ':' .. rest, 'PX', 86400000)
  end
  return wanted
end

--- KEYS lock, state, readers, marks, line; ARGV 1 the value; 2 for how long it is set, ms; 3 deadline
--- in this node's ms; 4 token, as in `enter`; 5 r reader, w exclusive; 6 the mark of this acquisition,
--- which later ones do not pass; 7 how long it stays, ms (0: no mark). Answers as `enter`, with ' 1'
--- behind the time of a busy name where no mark is before this one, else ' 0'.
-- name: enter_units
local function passes(mark, mode)             -- it may be before some, and none is before it
  local w, r = earliest('w'), mode == 'w' and earliest('r')
  if (w and w < mark) or (r and r < mark) then return false end
  if call('ZCARD', marks) <= call('ZCARD', line) then return true end
  for _, m in ipairs(call('ZRANGE', marks, 0, -1)) do
    if m < mark and string.sub(m, 1, 1) ~= '!' and (mode == 'w' or string.sub(m, 18, 18) == 'w') then return false end
  end
  return true
end

local function enter(value, px, deadline, token, mode, mark, window)
  if now > tonumber(deadline) then return 'l ' .. int(now) end
  local form, last, exclusive, rest = read()
  local cur = look()
  if not form or type(cur) == 'table' then return 'k' end
  local marked = call('EXISTS', marks) == 1
  if marked then call('ZREMRANGEBYSCORE', marks, '-inf', int(now - 1)) end
  local shares = mode == 'r' and cur == READERS
  local mine = cur == value or (shares and call('ZSCORE', hold, value))
  if not mine then
    local free = not cur or (shares and not call('ZSCORE', hold, '!' .. value))
    if free and marked then free = not call('ZSCORE', marks, '!' .. value) and passes(mark, mode) end
    if not free then
      if window ~= '0' then put(mark, window) end
      settle(form, last, rest)
      return 'b ' .. int(call('PTTL', lock)) .. (passes(mark, mode) and ' 1' or ' 0')
    end
  end
  if marked then drop(mark) end
  if mode == 'r' and cur ~= value then
    join(cur, value, px)
  else
    call('SET', lock, value, 'PX', px)
  end
  if marked or form ~= '1' then form = settle(form, last, rest) end
  if token == '?' then return (mine and 'H ' or 'h ') .. last end
  if mode == 'r' then
    if exclusive >= token then return (mine and 'H ' or 'h ') .. exclusive end
    if last < token then last = token end
    rest = ':' .. exclusive
  else
    if last > token or (last == token and rest ~= value) then return (mine and 'H ' or 'h ') .. last end
    last, rest = token, value
  end
  call('SET', state, form .. ':' .. last .. ':' .. rest, 'PXAT', till(last, px))
  return mine and 'G' or 'g'
end

-- name: enter_units_one
use(1)
return enter(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7])

--- The same for many locks: KEYS and ARGV lock by lock, and an answer each.
-- name: enter_units_many
local out = {}
for i = 1, #KEYS / 5 do
  local a = 7 * i - 6
  use(5 * i - 4)
  out[i] = enter(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6])
end
return out

--- The renewal of a reader, or of an exclusive holder that becomes one. KEYS as above; ARGV 1
--- value, 2 for how long from now, ms, 3 deadline, 4 the token. Answers as `renew`; e also where
--- only others read. Never makes a lock that is missing.
-- name: renew_units
local function renew(value, px, deadline)
  if now > tonumber(deadline) then return 'l ' .. int(now) end
  local cur = look()
  local shares = cur == READERS
  if cur == value or (shares and call('ZSCORE', hold, value)) then
    join(cur, value, px)
    if cur == value then tell(READERS) end    -- a downgrade
    local form, last = read()
    if form then call('PEXPIREAT', state, till(last, px)) end
    return 'y'
  end
  local broken = '!' .. value
  if cur == broken or (shares and call('ZSCORE', hold, broken)) then return 'x' end
  if call('ZSCORE', marks, broken) then return 'v' end
  if not cur or shares then return 'e' end
  return 'n'
end

-- name: renew_units_one
use(1)
return renew(ARGV[1], ARGV[2], ARGV[3])

-- name: renew_units_many
local out = {}
for i = 1, #KEYS / 5 do
  local a = 4 * i - 3
  use(5 * i - 4)
  out[i] = renew(ARGV[a], ARGV[a + 1], ARGV[a + 2])
end
return out

--- KEYS as above; ARGV 1 value; 2 for how long the name stays closed, ms (0: not at all); 3 the
--- mark to remove ('' = none). Answers as `release`.
-- name: leave
local function leave(value, closed, mark)
  if mark ~= '' then drop(mark) end
  local cur = look()
  local stays = tonumber(closed) > 0
  if stays then closed = int(now + closed) end
  local result = cur and 2 or 0
  if cur == value then
    if stays then call('SET', lock, CLOSED, 'PXAT', closed) else call('DEL', lock) end
    result = 1
  elseif cur == READERS and call('ZREM', hold, value) == 1 then
    if stays then call('ZADD', hold, closed, '=' .. value) end
    part()
    result = 1
  end
  pcall(tell, redis.pcall('GET', lock))       -- it is given back, even if a waiter cannot be told
  return result
end

--- KEYS lock, line; ARGV the value. Answers as `release`.
-- name: give_back
local function tell_of(key, queue, cur)
  local function other(which) return (string.gsub(queue, '}:hf:l', '}:hf:' .. which, 1)) end
  lock, state, hold, marks, line = key, other('t'), other('r'), other('m'), queue
  pcall(tell, cur)                            -- it is given back, even if a waiter cannot be told
end

-- name: give_back_one
tell_of(KEYS[1], KEYS[2], v ~= ARGV[1] and v)
return left

-- name: give_back_many
local out = {}
for i = 1, #KEYS / 2 do
  local key, queue = KEYS[2 * i - 1], KEYS[2 * i]
  local v = redis.pcall('GET', key)
  out[i] = v and 2 or 0
  if v == ARGV[i] then out[i] = call('DEL', key) end
  if redis.pcall('EXISTS', queue) == 1 then tell_of(key, queue, v ~= ARGV[i] and v) end
end
return out

-- name: leave_one
use(1)
return leave(ARGV[1], ARGV[2], ARGV[3])

-- name: leave_many
local out = {}
for i = 1, #KEYS / 5 do
  use(5 * i - 4)
  out[i] = leave(ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i])
end
return out

--- KEYS as above. Answers {value or '', PTTL, state or '', and "LEFT VALUE" of each reader}, or
--- 'k'.
-- name: inspect
local cur = redis.pcall('GET', KEYS[1])
local s = redis.pcall('GET', KEYS[2])
if type(cur) == 'table' or type(s) == 'table' then return 'k' end
local out = {cur or '', redis.call('PTTL', KEYS[1]), s or ''}
if cur ~= 'hf:s' then return out end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local all = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  local left = all[i + 1] - now
  if left >= 0 then out[#out + 1] = string.format('%.0f', left) .. ' ' .. all[i] end
end
return out

--- KEYS as above; ARGV 1 the value to break, 2 '1' = free at once, 3 for how long a request for it
--- may still arrive, ms. A '!' before the value keeps it until its ttl has passed, and lets no
--- renewal succeed. Answers {d, ms left, KEPT OUT}, or {n, -1, KEPT OUT} when the value is missing;
--- KEPT OUT: 1 when it cannot come back here, 0 when the permission for that is missing.
-- name: break_lock
use(1)
local value, at_once, window = ARGV[1], ARGV[2] == '1', ARGV[3]
local cur, broken = look(), '!' .. ARGV[1]
local function keep_out()
  local form, last, _, rest = read()
  if not form or put(broken, window) then return 0 end
  settle(form, last, rest)
  return 1
end
if cur == READERS then
  local ends = call('ZSCORE', hold, value) or call('ZSCORE', hold, broken)
  if not ends then return {'n', -1, keep_out()} end
  call('ZREM', hold, value)
  if at_once then
    call('ZREM', hold, broken)
    part()
    pcall(tell, redis.pcall('GET', lock))
  else
    call('ZADD', hold, ends, broken)
  end
  return {'d', ends - now, keep_out()}
end
if cur ~= value and cur ~= broken then return {'n', -1, keep_out()} end
local left = call('PTTL', lock)
if at_once or left < 0 then
  call('DEL', lock)
  pcall(tell, false)
elseif cur == value then
  call('SET', lock, broken, 'KEEPTTL')
end
return {'d', left, keep_out()}
