--- The Lua that each node runs, in the sections from which requests.cpp assembles the scripts; lines with three dashes are
--- not sent.
---
--- Beside the lock itself, a node keeps one string about a name, "1:FFFFFFFFFFFFFFFF:OWNER": the
--- format, the highest token written to this node (16 digits, so that text compares as numbers do),
--- and its owner. It expires a day and the ttl after the token's time or its last use, whichever is
--- later, by this node's clock. units.lua describes it where there were readers: a mutex that
--- meets that is answered `u` and acquires nothing. Numbers become text by string.format only: Lua's
--- own conversion keeps 14 digits.

--- The beginning of all scripts with a deadline.
-- name: clock
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function till(token, ttl)
  return string.format('%.0f', math.max(math.floor(token / 1000), now) + 86400000 + ttl)
end

--- KEYS lock, state; ARGV 1 owner, 2 ttl ms, 3 deadline in this node's ms, 4 token ('': none is
--- wanted; '?': the client does not know the time yet). One vote: the lock is taken if it is free,
--- and the token is written if it is higher than what is there. Answers:
---   g          taken, the token is written
---   h TOKEN    taken, but no token is written: ask again with one higher than this (0: none here)
---   G, H       the same, and it had taken the lock before: by an earlier request, or by the same
---              one that came by another address of this server
---   b MS       somebody else has it, for so long (-1: for ever)
---   l MS       came too late, and it is now
---   u          readers hold or wait, or did: ask with units (units.lua); nothing is taken
---   k          the key holds something else, or the token's key something that is no token or
---              could not grow on in 16 digits
--- This node's clock has no say in the token: how the nodes' clocks are weighed is the client's
--- matter.
-- name: enter
local function enter(lock, state, owner, ttl, deadline, token)
  if now > tonumber(deadline) then return 'l ' .. string.format('%.0f', now) end
  local taken = call('SET', lock, owner, 'NX', 'PX', ttl)
  if not taken then
    local cur = redis.pcall('GET', lock)
    if type(cur) == 'table' then return 'k' end
    if cur == 'hf:s' then return 'u' end
    if cur ~= owner then return 'b ' .. string.format('%.0f', call('PTTL', lock)) end
    call('PEXPIRE', lock, ttl)
  end
  if token == '' then return 'g' end
  local low, form, last = token == '?', '1', '0'
  local s = redis.pcall('GET', state)
  if s then
    form, last = '', nil
    if type(s) == 'string' then form, last = string.match(s, '^([12]):(%d+):') end
    if form == '2' and taken then
      call('DEL', lock)
      return 'u'
    end
    if not last or #last ~= 16 or last > '9999000000000000' then
      call('DEL', lock)
      return 'k'
    end
    low = low or last > token or (last == token and string.sub(s, 20) ~= owner)
  end
  if low then return (taken and 'h ' or 'H ') .. last end
  call('SET', state, form .. ':' .. token .. ':' .. owner, 'PXAT', till(token, ttl))
  return taken and 'g' or 'G'
end

-- name: enter_one
return enter(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])

--- The same for many locks: KEYS and ARGV lock by lock, and an answer each.
-- name: enter_many
local out = {}
for i = 1, #KEYS / 2 do
  local k, a = 2 * i - 1, 4 * i - 3
  out[i] = enter(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
end
return out

--- KEYS lock; ARGV owner. Answers 1 deleted, 2 somebody else's, 0 nothing there.
-- name: release
local v = redis.pcall('GET', KEYS[1])
if v == ARGV[1] then return redis.call('DEL', KEYS[1]) end
if v then return 2 end
return 0

--- The same for many locks.
-- name: release_many
local out = {}
for i = 1, #KEYS do
  local v = redis.pcall('GET', KEYS[i])
  if v == ARGV[i] then
    out[i] = redis.call('DEL', KEYS[i])
  else
    out[i] = v and 2 or 0
  end
end
return out

--- KEYS lock, state; ARGV 1 owner, 2 ttl ms, 3 deadline in this node's ms, 4 the token ('': it has
--- none). Answers y renewed, x revoked, v revoked and no longer there, e nothing there, n somebody
--- else's, l MS late. Whoever broke it has left a mark beside the state (units.lua). Never
--- makes a lock: a renewal that comes late must not bring one back.
-- name: renew
local function renew(lock, state, owner, ttl, deadline, token)
  if now > tonumber(deadline) then return 'l ' .. string.format('%.0f', now) end
  local cur = redis.pcall('GET', lock)
  if cur == owner then
    call('PEXPIRE', lock, ttl)
    if token ~= '' then call('PEXPIREAT', state, till(token, ttl)) end
    return 'y'
  end
  local broken = '!' .. owner
  if cur == broken then return 'x' end
  local marks = string.gsub(state, '}:hf:t', '}:hf:m', 1)
  if type(redis.pcall('ZSCORE', marks, broken)) == 'string' then return 'v' end
  return cur and 'n' or 'e'
end

-- name: renew_one
return renew(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])

--- The same for many locks.
-- name: renew_many
local out = {}
for i = 1, #KEYS / 2 do
  local k, a = 2 * i - 1, 4 * i - 3
  out[i] = renew(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
end
return out
