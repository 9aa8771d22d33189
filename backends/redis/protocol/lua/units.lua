--- Lua for what a mutex does not need: readers, permits, lock_delay and min_hold. operators.lua
--- has operators' calls about one of several holders.
---
--- Readers and permits are members of one more key, a sorted set by the end of each: OWNER, and for
--- further permits OWNER#2, OWNER#3... Members that were released early and stay for min_hold begin
--- with '='. The lock's own key is then a marker that lives as long as the last member:
---   hf:s:TOKEN   readers, who all have this token
---   hf:p:LIMIT   permits
---   hf:m         no holder: an exclusive holder released before the end of min_hold
--- The set counts only together with such a marker. A client that makes a marker empties the set
--- first: its members are lost, as another client had the key in between.
---
--- In the queue, a waiter for units of readers or permits has them after its channel: "ALIVE PX
--- CHANNEL TAKE OF". While one of these waits or holds, the state has format 2.
---
--- Operators' marks are kept with those of owners that left: '!OWNER' broken, '?OWNER' asked.
---
--- In a cluster a script ends where it names a key that is not there, while the slot is on its way to
--- another server: all its keys were there at first, so it has removed that one itself. What it has
--- changed by then must be no loss: members are written before the marker that makes them count, and
--- what a leaving owner keeps closed before its members go.

--- A free lock without waiters, before all else is defined: that takes the server as long as the
--- grant.
-- name: quick_units
local function quick_units(k, a)              -- its first key and argument
  if now > tonumber(ARGV[a + 4]) then return nil end
  local take, of = tonumber(ARGV[a + 6]), ARGV[a + 7]
  return quick(KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 4], ARGV[a], ARGV[a + 1],
               take ~= 4294967295 and KEYS[k + 5], take, of)
end
if #KEYS == 6 then
  local got = quick_units(1, 2)
  if got then return {got} end
end

--- The only reader, or holder of a permit, leaves, and nobody waits.
-- name: quick_leave_units
local function quick_leave_units(lock, state, queue, hold, owner, ghost, closed, delay)
  if ghost ~= '0' or closed ~= '0' or delay ~= '0' or call('EXISTS', queue) ~= 0 then return nil end
  local cur, parts = pcall_('GET', lock), pcall_('ZRANGE', hold, 0, 1)
  if type(cur) ~= 'string' or not match(cur, '^hf:[sp]:') then return nil end
  if parts[1] ~= owner or parts[2] then return nil end
  local last, v = match(call('GET', state) or '', '^2:(%d+):0([nracu]):$')
  if not last or #last ~= 16 then return nil end
  call('DEL', lock, hold)
  call('SET', state, '1:' .. last .. ':0' .. v .. ':',
       'PXAT', int(math.max(math.floor(last / 1000), now) + 86400000))
  return 'r'
end
if #KEYS == 6 then
  local left = quick_leave_units(KEYS[1], KEYS[2], KEYS[3], KEYS[6], ARGV[1], ARGV[3], ARGV[4], ARGV[5])
  if left then return {left} end
end

--- What is held, and grants of what is left.
-- name: units
local ALL = 4294967295
local HOLD
local function use_units(at)
  use(at)
  HOLD = KEYS[at + 5]
end

-- What is in the lock's key; units in use; their limit, nil where nobody of ours holds; the
-- readers' token.
local cur, used, kind, shared

local function look()                         -- false: a key of another type
  cur = pcall_('GET', LOCK)
  if type(cur) == 'table' then return false end
  used, kind, shared = 0, nil, nil
  if not cur then return true end
  local what, number = match(cur, '^hf:([sp]):(%d+)$')
  if what then
    call('ZREMRANGEBYSCORE', HOLD, '-inf', int(now - 1))
    used = call('ZCARD', HOLD)
    if used == 0 then                         -- their time is over
      call('DEL', LOCK)
      cur = false
    elseif what == 's' then
      kind, shared = ALL, number
    else
      kind = tonumber(number)
    end
  else
    used = ALL
    local _, _, _, o = read()
    if cur == 'hf:m' or cur == o then kind = ALL end
  end
  return true
end

local function member(owner)                  -- until when it holds a part, if it does
  local ends = cur and used < ALL and call('ZSCORE', HOLD, owner)
  return ends and tonumber(ends)
end

local function fits(take, of, reserved)
  return (not kind or kind == of) and used + reserved + take <= of
end

local function parts(owner, take)             -- its members, one for each permit
  local all = {owner}
  for i = 2, take do all[i] = owner .. '#' .. i end
  return all
end

local function add(owner, take, ends)
  local words = {}
  for i, m in ipairs(parts(owner, take)) do words[2 * i - 1], words[2 * i] = int(ends), m end
  call('ZADD', HOLD, unpack(words))
end

local function measure(ends)                  -- the key lives as long as the last of them
  local last = pcall_('ZRANGE', HOLD, -1, -1, 'WITHSCORES')[2]
  if not last then return false end           -- there is none
  if ends and tonumber(last) > ends then return true end
  call('PEXPIREAT', LOCK, last)
  call('PEXPIREAT', HOLD, int(tonumber(last) + 1))
  return true
end

local function drop(owner)                    -- how many members it had
  local several = call('ZSCORE', HOLD, owner .. '#2')
  return call('ZREM', HOLD, unpack(several and parts(owner, 256) or {owner}))
end

local function form_of(form)                  -- of the state without parts of it held
  return (form == '1' or call('EXISTS', QUEUE) == 0) and '1' or '2'
end

local function vacate(f, v, form, ends)       -- after a member left that had its part until then
  if measure(ends) then return end
  call('DEL', LOCK)
  if f then keep_free(form_of(form), f, v) end
end

-- Answers the number of the grant, what its holder is told, and its token.
local function grant(owner, take, of, px, claimed)
  local number, v, form = next_grant(owner)
  if take == ALL then
    call('SET', LOCK, owner, 'PX', px)
    keep(form_of(form), number, claimed, v, owner, px)
    cur, used, kind = owner, ALL, ALL
    return number, v, number
  end
  local first = used == 0
  if first then
    call('DEL', HOLD)
    cur, kind, shared = 'hf:p:' .. int(of), of, '0'
    if of == ALL then cur, shared = 'hf:s:' .. number, number end
  end
  add(owner, take, now + px)
  if first then call('SET', LOCK, cur, 'PX', px) end
  measure()
  used = used + take
  keep('2', number, '0', v, '', px)
  return number, v, shared or '0'
end

-- What is free goes to those at the head of the line that fit, are alive and listen. Answers why it
-- stopped, and what belongs to waiters before that look by themselves: 'caller' at the caller's own
-- place, 'end' behind the last one, 'passed' there when one was passed over that has ceased to listen,
-- 'blocked' at one that does not fit, 'other' at one that waits for another kind than `mine`, 'more'
-- when the bound was hit.
local function dispatch(caller, mine)
  local at, reserved, granted, passed = 0, 0, 0, false
  for _ = 1, 512 do
    local m = call('ZRANGE', QUEUE, at, at)[1]
    if not m then return passed and 'passed' or 'end', reserved end
    if m == caller then return 'caller', reserved end
    local rec = call('HGET', WAIT, m)
    local alive, px, chan, take, of
    if rec then alive, px, chan, take, of = match(rec, '^(%d+) (%d+) (%S*) ?(%d*) ?(%d*)$') end
    if not alive or tonumber(alive) < now then
      forget(m)
    else
      take, of = tonumber(take) or ALL, tonumber(of) or ALL
      if mine and of ~= mine then return 'other', reserved end
      if not fits(take, of, reserved) then return 'blocked', reserved end
      if chan == '' then
        at, reserved = at + 1, reserved + take
      elseif listens(chan) then
        forget(m)
        local number, v, token = grant(m, take, of, px, '0')
        if take ~= ALL then v = v .. token end
        -- The message is the grant, whoever hears it: last, as for a mutex.
        pcall_('PUBLISH', chan, m .. ' ' .. number .. ' ' .. v .. ' ' .. LOCK)
        granted = granted + 1
        if granted == 128 then return 'more', reserved end
      else
        at, passed = at + 1, true             -- until it looks by itself
      end
    end
  end
  return 'more', reserved
end

--- ARGV 1 channel ('' = none), then per lock: owner; for how long a grant is set, ms; for how long
--- a waiter counts as alive (0: do not queue), and a grant handed to it is set, ms; deadline in
--- server ms; ticket ('' = new); units, and their limit. KEYS: six per lock. Answers one text per
--- lock, as enter does; m: another kind, or limit, is held or waited for.
-- name: enter_units
local function enter(owner, px, window, handed, till, ticket, chan, take, of)
  if now > tonumber(till) then return 'l ' .. int(now) end
  local over = gone(owner)
  if over then return over end
  local f, c, v, o, form = read()
  if not f or not look() then return 'k' end
  take, of = tonumber(take), tonumber(of)
  if cur == owner then                        -- again, or handed over and now claimed
    if o ~= owner then return 'k' end
    if c == 'x' then return 'x' end
    local token = format('%016.0f', f)
    call('PEXPIRE', LOCK, px)
    keep(form, token, '1', v, owner, px)
    asked(owner, px)
    return 'g ' .. token .. ' ' .. v
  end
  if member(owner) then
    if take == ALL then return 'l ' .. int(now) end  -- of a writer that is a reader by now
    if marked('!' .. owner) then return 'x' end
    add(owner, take, now + px)
    measure()
    asked(owner, px)
    return 'g ' .. (shared or '0') .. ' ' .. v
  end
  local stopped, reserved = 'other', 0
  local waited = call('EXISTS', QUEUE) == 1
  if not kind or kind == of then stopped = 'end' end
  if stopped == 'end' and waited then
    come_back(owner, ticket)
    stopped, reserved = dispatch(owner, of)
  end
  if stopped == 'other' then
    forget(owner)
    return 'm'
  end
  if (stopped == 'end' or stopped == 'caller') and fits(take, of, reserved) then
    if waited then forget(owner) end
    local _, told, token = grant(owner, take, of, px, '1')
    if take ~= ALL and waited then pcall(dispatch, '') end
    return 'g ' .. token .. ' ' .. told
  end
  f, c, v, o, form = read()
  local newest = format('%016.0f', f)
  local left = int(call('PTTL', LOCK))
  if stopped == 'more' then
    left = '-2'                               -- whoever looks goes on with it
  elseif cur and used < ALL then
    left = int(call('ZRANGE', HOLD, 0, 0, 'WITHSCORES')[2] - now)
  end
  if window == '0' then return 'b ' .. newest .. ' ' .. left end
  local what = ''
  if take ~= ALL then
    what = ' ' .. int(take) .. ' ' .. int(of)
    if form == '1' then
      local s = call('GET', STATE)
      if s then
        call('SET', STATE, '2' .. sub(s, 2), 'KEEPTTL')
      else
        keep('2', newest, '0', 'n', '', px)
      end
    end
  end
  local place, told = stand(owner, ticket, int(now + tonumber(window)) .. ' ' .. handed, chan, what)
  local ours = told and (used < ALL or kind) and '1' or '0'
  return 'q ' .. newest .. ' ' .. left .. ' ' .. place .. ' ' .. int(call('ZRANK', QUEUE, owner)) ..
         ' ' .. ours
end
return for_each(#KEYS / 6, function(i)
  local a = 8 * i - 6
  local got = #KEYS > 6 and quick_units(6 * i - 5, a)
  if got then return got end
  use_units(6 * i - 5)
  return enter(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[1],
               ARGV[a + 6], ARGV[a + 7])
end)

--- ARGV per lock: owner; how, and until when a request of this owner may still arrive, as in
--- leave_one; for how long the name stays closed, ms (0: not at all); the lock delay, ms.
--- KEYS: six per lock. Answers as leave_one, with ' m' appended when the caller must come again,
--- since more waiters can be granted.
-- name: leave_units
local function leave(owner, how, ghost, closed, delay)
  closed, delay = tonumber(closed), tonumber(delay)
  if tonumber(ghost) > now then bury(owner, tonumber(ghost)) end
  local waited = call('EXISTS', QUEUE) == 1
  local left, why = true
  if waited then left, why = pcall(forget, owner) end
  if not left and not string.find(words(why), 'WRONGTYPE', 1, true) then return 'E ' .. words(why) end
  local f, _, v, o, form = read()
  if not look() then return 'k' end
  local stays = closed > 0 and how ~= 'u'
  local result, ends = 'r', member(owner)
  if cur == owner then
    if not f then return 'k' end
    if delay > 0 and how ~= 'u' and call('PTTL', LOCK) <= delay then result, how = 'e', 'c' end
    if stays then
      call('PEXPIRE', LOCK, int(closed))      -- without memory only a script that has written may SET
      call('SET', LOCK, 'hf:m', 'KEEPTTL')
    else
      call('DEL', LOCK)
    end
    if o == owner then
      if how ~= 'u' then v = how end
      keep_free(form_of(form), f, v)
    end
  elseif ends then
    if delay > 0 and ends - now <= delay then result = 'e' end
    if stays then add('=' .. owner, 1, now + closed) end
    local n = drop(owner)
    if stays and n > 1 then add('=' .. owner, n, now + closed) end
    vacate(f, v, form, not stays and ends)
  else
    result = cur and 'o' or 'e'
    if o == owner and how == 'u' then keep_free(form_of(form), f, v) end
  end
  if not waited then return result end
  look()
  local ok, stopped = pcall(dispatch, '')     -- it is free, whoever cannot be told
  if ok and stopped == 'more' then result = result .. ' m' end
  return result
end
return for_each(#KEYS / 6, function(i)
  local a = 5 * i - 4
  use_units(6 * i - 5)
  return leave(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
end)

--- For readers, permits, and a writer that becomes a reader. ARGV per lock: owner; for how long it
--- is set from now on, ms; deadline in server ms; units and their limit. KEYS: six per lock.
--- Answers as renew.
-- name: renew_units
local function renew(owner, px, deadline, take, of)
  if now > tonumber(deadline) then return 'l ' .. int(now) end
  local f, c, v, o, form = read()
  if not look() then return 'n' end
  if not f then return 'E WRONGTYPE the state has another form' end
  if cur == owner then                        -- a downgrade, with no moment in which it is free
    if o == owner then
      if c == 'x' then return 'x' end
      call('PEXPIRE', LOCK, px)               -- without memory only a script that has written may SET
      keep_free(form, f, 'r')
    end
    used, kind = 0, nil
    grant(owner, tonumber(take), tonumber(of), px, '1')
    pcall(dispatch, '')
  elseif member(owner) then
    if marked('!' .. owner) then return 'x' end
    add(owner, tonumber(take), now + px)
    measure()
    if call('PTTL', STATE) < 648000000 then call('PEXPIREAT', STATE, till(f, px)) end
  else
    return (c == 'x' and o == owner or marked(owner)) and 'x' or 'n'
  end
  return asked(owner, px) and 'a' or 'y'
end
return for_each(#KEYS / 6, function(i)
  local a = 5 * i - 4
  use_units(6 * i - 5)
  return renew(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
end)
