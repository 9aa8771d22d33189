--- A mutex: its queue, one attempt, release, renewal; and the scripts of mode=plain.

--- Hand-off in a queue of mutexes.
-- name: hand_over
-- The lock is free: it goes to the first waiter that is alive, unless one before it looks by itself.
-- One that has ceased to listen is passed until it looks: if it was killed, it never does. 'caller'
-- when it is the caller's, 'handed' when somebody else got it, 'unreached' when it is that of one that
-- cannot be notified, 'more' when the bound was hit, 'none' when nobody waits.
local function dispatch(caller)
  if call('EXISTS', QUEUE) == 0 then return 'none' end
  local at = 0
  for _ = 1, 512 do
    local m = call('ZRANGE', QUEUE, at, at)[1]
    if not m then return at == 0 and 'none' or 'unreached' end
    if m == caller then return 'caller' end
    local rec = call('HGET', WAIT, m)
    local alive, px, chan
    if rec then alive, px, chan = match(rec, '^(%d+) (%d+) (.*)$') end
    if not alive or tonumber(alive) < now then
      forget(m)
    else
      if chan == '' then return 'unreached' end
      if listens(chan) then
        local token, v = next_grant(m)
        call('SET', LOCK, m, 'PX', px)
        keep('1', token, '0', v, m, px)
        forget(m)
        -- The message is the grant, whoever hears it: last, since a server that refuses a write
        -- ends the script there. Where it is not said, the waiter finds out by itself.
        pcall_('PUBLISH', chan, m .. ' ' .. token .. ' ' .. v .. ' ' .. LOCK)
        return 'handed'
      end
      at = at + 1                             -- it keeps its place
    end
  end
  return 'more'
end

--- One attempt, if quick() had no answer.
-- name: enter
local function enter(owner, ttl, window, till, ticket, chan)
  if now > tonumber(till) then return 'l ' .. int(now) end
  local over = gone(owner)
  if over then return over end
  local cur = pcall_('GET', LOCK)
  if type(cur) == 'table' then return 'k' end
  local f, c, v, o, form = read()
  if not f then return 'k' end
  if form ~= '1' or cur and sub(cur, 1, 3) == 'hf:' then return 'u' end
  if cur == owner then                        -- again, or handed over and now claimed
    if o ~= owner then return 'k' end
    if c == 'x' then return 'x' end
    call('PEXPIRE', LOCK, ttl)
    local token = format('%016.0f', f)
    keep('1', token, '1', v, owner, ttl)
    asked(owner, ttl)
    return 'g ' .. token .. ' ' .. v
  end
  if not cur then
    come_back(owner, ticket)
    local d = dispatch(owner)
    if d == 'none' or d == 'caller' then
      if d == 'caller' then forget(owner) end
      local token, told = next_grant(owner)
      call('SET', LOCK, owner, 'PX', ttl)
      keep('1', token, '1', told, owner, ttl)
      return 'g ' .. token .. ' ' .. told
    end
    f, c, v, o = read()
  end
  local left = int(call('PTTL', LOCK))
  if window == '0' then return 'b ' .. format('%016.0f', f) .. ' ' .. left end
  local place, told = stand(owner, ticket, int(now + tonumber(window)) .. ' ' .. window, chan, '')
  local ours = told and call('GET', LOCK) == o and '1' or '0'
  return 'q ' .. format('%016.0f', f) .. ' ' .. left .. ' ' .. place .. ' ' ..
         int(call('ZRANK', QUEUE, owner)) .. ' ' .. ours
end

--- ARGV 1 channel ('' = none), then per lock: owner, ttl ms, window ms (0: do not queue), deadline
--- in server ms, ticket ('' = new). KEYS: five per lock. Answers one text per lock.
-- name: enter_one
if now <= tonumber(ARGV[5]) then
  local got = quick(KEYS[1], KEYS[2], KEYS[3], KEYS[5], ARGV[2], ARGV[3])
  if got then return got end
end

-- name: enter_one_slow
use(1)
return enter(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[1])

-- name: enter_many
return for_each(#KEYS / 5, function(i)
  local k, a = 5 * i - 4, 5 * i - 3
  if now <= tonumber(ARGV[a + 3]) then
    local got = quick(KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 4], ARGV[a], ARGV[a + 1])
    if got then return got end
  end
  use(k)
  return enter(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[1])
end)

--- The holder's own release without waiters. It needs neither clock nor state, since the holder
--- knows its token.
-- name: quick_leave
local call = redis.call
local function quick_leave(lock, state, queue, owner, ghost, new_state, till)
  if ghost ~= '0' or new_state == '' or redis.pcall('GET', lock) ~= owner or
     call('EXISTS', queue) ~= 0 then return nil end
  call('DEL', lock)
  call('SET', state, new_state, 'PXAT', till)
  return 'r'
end

-- name: leave
local function leave(owner, how, ghost)
  if tonumber(ghost) > now then bury(owner, tonumber(ghost)) end
  local f, _, v, o, form = read()
  if f and form ~= '1' then return 'u' end
  local left, why = pcall(forget, owner)      -- a line of another kind keeps nobody from leaving
  if not left and not string.find(words(why), 'WRONGTYPE', 1, true) then return 'E ' .. words(why) end
  local cur = pcall_('GET', LOCK)
  if type(cur) == 'table' then return 'k' end
  local result = 'r'
  if cur == owner then
    if not f then return 'k' end
    call('DEL', LOCK)
    if o == owner then
      if how ~= 'u' then v = how end
      keep_free('1', f, v)
    end
  elseif cur then
    return 'o'
  else
    result = 'e'
    if o == owner and how == 'u' then keep_free('1', f, v) end
  end
  pcall(dispatch, '')                         -- it is free, whoever cannot be told
  return result
end

--- ARGV per lock: owner; how: r done, a abandoned, u never used; until when an unanswered request
--- of this owner may still arrive, server ms (0 = none); the state to leave behind, when the caller
--- knows its token, else ''; when that state expires. KEYS: five per lock.
-- name: leave_one
local got = quick_leave(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[3], ARGV[4], ARGV[5])
if got then return got end

-- name: leave_one_slow
use(1)
return for_each(1, function() return leave(ARGV[1], ARGV[2], ARGV[3]) end)[1]

-- name: leave_many
return for_each(#KEYS / 5, function(i)
  local a = 5 * i - 4                         -- of the keys as well
  local got = quick_leave(KEYS[a], KEYS[a + 1], KEYS[a + 2], ARGV[a], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
  if got then return got end
  use(a)
  return leave(ARGV[a], ARGV[a + 1], ARGV[a + 2])
end)

--- KEYS lock, state, tombs per lease; ARGV per lease: owner, ttl ms, '1' = first renewal after a
--- hand-off, deadline in server ms. Answers y renewed, a renewed and asked to release, n lost, x
--- revoked, 'l NOW' late, 'E WORDS' an error (as in all requests for many locks).
-- name: renew
local out = {}
for i = 1, #KEYS / 3 do
  local lock, state, tombs = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, ttl, first, deadline = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i]
  if now > tonumber(deadline) then
    out[i] = 'l ' .. int(now)
  elseif pcall_('GET', lock) == owner then
    local s = pcall_('GET', state)
    local whole = type(s) == 'string' and sub(s, 23) == owner
    if whole and sub(s, 20, 20) == 'x' then
      out[i] = 'x'
    else
      call('PEXPIRE', lock, ttl)
      if whole then
        if first == '1' then call('SET', state, sub(s, 1, 19) .. '1' .. sub(s, 21), 'KEEPTTL') end
        -- The grant set eight days: only an older one is looked at again, and moved twice a day.
        local token = tonumber(sub(s, 3, 18)) or 0
        if now_us - token > 43200000000 and call('PTTL', state) < 648000000 then
          call('PEXPIREAT', state, int(now + ttl + 700000000))
        end
      end
      out[i] = 'y'
      local till = pcall_('ZSCORE', tombs, '?' .. owner)
      if type(till) == 'string' and tonumber(till) >= now then
        out[i] = 'a'
        call('ZADD', tombs, int(now + ttl), '?' .. owner)
        if call('PTTL', tombs) <= tonumber(ttl) then call('PEXPIRE', tombs, ttl + 1) end
      end
    end
  else
    local s, till = pcall_('GET', state), pcall_('ZSCORE', tombs, owner)
    local revoked = type(s) == 'string' and sub(s, 20, 20) == 'x' and sub(s, 23) == owner
    out[i] = (revoked or type(till) == 'string' and tonumber(till) >= now) and 'x' or 'n'
  end
end
return out

--- mode=plain: the compare-and-delete of the documentation, and its renewal. A value that begins
--- with '!' is revoked.
-- name: plain_release
if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end

-- name: plain_renew
local cur = redis.call('GET', KEYS[1])
if cur == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if cur == '!' .. ARGV[1] then return 2 end
return 0
