// The Lua that the server runs, in the pieces from which scripts.cpp assembles the scripts.
//
// The state of a lock is one string, "1:FFFFFFFFFFFFFFFF:CV:OWNER":
//   1      format number; 2: readers or permits are held or waited for (lua_units.hpp), and a
//   mutex's
//          request is answered "u": ask with the units
//   F      token of the last grant, 16 digits
//   C      0 handed over and not yet claimed, 1 claimed, x revoked
//   V      how the previous holder ended, as reported to the holder or, without one, to the next
//          holder: n none, r released, a abandoned, c crashed, u unknown
//   OWNER  owner of the last grant until it is released; then empty
// While the lock is held, the state is kept for the ttl and eight days, which renewals move, so
// that a name whose holder crashed is forgotten some day; after a release for 24 hours. Both count
// from the token if that is ahead of the clock. A text of another form, or with a token that could
// not grow further as a Lua number, is answered "k" and left as it is. Numbers become text by
// string.format only: Lua's own conversion keeps 14 digits.
#pragma once

namespace holdfast::redis::lua {

/// The beginning of all scripts.
inline constexpr const char* clock = R"lua(
local call, pcall_, format, sub, match = redis.call, redis.pcall, string.format, string.sub, string.match
local t = call('TIME')
local now_us = t[1] * 1000000 + t[2]
local now = math.floor(now_us / 1000)
local function int(x) return format('%.0f', x) end
)lua";

/// Reads a state, and how long it is kept. Behind the fast paths, which have no time for it.
inline constexpr const char* state = R"lua(
local HELD, FREE, MOST = 700000000, 86400000, 9007000000000000

local function parse(s)                       -- last token, claimed, verdict, format; nil: another form
  local form, last, c, v = match(s, '^([12]):(%d+):([01x])([nracu]):')
  if not form or #last ~= 16 or tonumber(last) > MOST then return nil end
  return last, c, v, form
end

-- Until when a held lock's state is kept: its token counts, or now if that is later.
local function till(f, ttl) return int(math.max(math.floor(f / 1000), now) + ttl + HELD) end

local function words(e) return type(e) == 'table' and e.err or e end
)lua";

/// A lock's failure is the answer for that lock only, not for others of the same call.
inline constexpr const char* for_each = R"lua(
local function for_each(n, one)               -- what one(i) answers, or its error, for i = 1..n
  local out, i = {}, 0
  local function go()
    while i < n do
      i = i + 1
      out[i] = one(i)
    end
  end
  while true do
    local ok, why = pcall(go)
    if ok then return out end
    out[i] = 'E ' .. words(why)
  end
end
)lua";

/// A free lock without waiters: most grants end here. `hold`, `take` and `of` are those of readers
/// and permits (lua_units.hpp).
inline constexpr const char* quick = R"lua(
local function quick(lock, state, queue, tombs, owner, ttl, hold, take, of)
  if #ttl > 8 then return nil end
  local there = hold and call('EXISTS', lock, queue, tombs, hold) or call('EXISTS', lock, queue, tombs)
  if there ~= 0 then return nil end
  local old = call('GET', state)
  local secs, micros = t[1], t[2]             -- texts, as TIME answers them: format() takes longer
  local token, v = secs .. sub('00000' .. micros, -6), 'n'
  if #token ~= 16 then token = format('%016.0f', now_us) end
  if old then                                 -- another form, or ahead of the clock: the slow way
    local form, last, c
    form, last, c, v = match(old, '^([12]):(%d+):([01x])([nracu]):')
    if not form or form == '2' and not hold or #last ~= 16 or last >= token then return nil end
    if #old > 22 then
      if v == 'c' or c ~= '0' then v = 'c' else v = 'u' end
    end
  end
  -- HELD + ttl as a text: the server takes long to print a number.
  local kept = '7' .. sub('0000000' .. ttl, -8)
  if not hold then
    call('SET', lock, owner, 'PX', ttl)
    call('SET', state, '1:' .. token .. ':1' .. v .. ':' .. owner, 'PX', kept)
    return 'g ' .. token .. ' ' .. v
  end
  local ends, words = int(now + ttl), {}
  for i = 1, take do words[2 * i - 1], words[2 * i] = ends, i == 1 and owner or owner .. '#' .. i end
  local readers = of == '4294967295'
  call('SET', lock, readers and 'hf:s:' .. token or 'hf:p:' .. of, 'PXAT', ends)
  call('ZADD', hold, unpack(words))
  call('PEXPIREAT', hold, ends)
  call('SET', state, '2:' .. token .. ':0' .. v .. ':', 'PX', kept)
  return 'g ' .. (readers and token or '0') .. ' ' .. v
end
)lua";

/// State and queue.
inline constexpr const char* line = R"lua(
local LOCK, STATE, QUEUE, WAIT, TOMB
local function use(at)
  LOCK, STATE, QUEUE, WAIT, TOMB = KEYS[at], KEYS[at + 1], KEYS[at + 2], KEYS[at + 3], KEYS[at + 4]
end

local function read()                         -- last token, claimed, verdict, open owner, format
  local s = call('GET', STATE)
  if not s then return 0, '0', 'n', '', '1' end
  local last, c, v, form = parse(s)
  if not last then return nil end
  return tonumber(last), c, v, sub(s, 23), form
end

local function next_grant()                   -- the next token, what its holder is told, the format
  local f, c, v, o, form = read()
  if o ~= '' then v = (v == 'c' or c ~= '0') and 'c' or 'u' end
  return format('%016.0f', math.max(f + 1, now_us)), v, form
end

local function keep(form, token, claimed, v, owner, ttl)
  call('SET', STATE, form .. ':' .. token .. ':' .. claimed .. v .. ':' .. owner,
       'PXAT', till(tonumber(token), ttl))
end

local function keep_free(form, f, v)          -- 24 h counted from the token, or from now if later
  call('SET', STATE, form .. ':' .. format('%016.0f', f) .. ':0' .. v .. ':',
       'PXAT', int(math.max(math.floor(f / 1000), now) + FREE))
end

local function forget(owner)
  call('ZREM', QUEUE, owner)
  call('HDEL', WAIT, owner)
end


local function bury(owner, till)              -- late requests of this owner do nothing until then
  call('ZREMRANGEBYSCORE', TOMB, '-inf', int(now))
  call('ZADD', TOMB, int(till), owner)
  local last = call('ZRANGE', TOMB, -1, -1, 'WITHSCORES')
  call('PEXPIREAT', TOMB, int(tonumber(last[2]) + 1))
end

-- At this server: a message also reaches those that listen at its replicas. Without the permission
-- to ask, everybody is taken to listen.
local function listens(chan)
  if chan == '' then return false end
  local named = pcall_('PUBSUB', 'NUMSUB', chan)
  return named.err ~= nil or tonumber(named[2]) > 0
end

-- Its place in line: by the ticket, so many us ago if that is '-' and a number, or the last one.
-- One that comes again and does not listen is recorded without its channel: nobody passes it from
-- then on, as nobody passes one that polls. Answers the place, and whether it can be notified.
local function stand(owner, ticket, rec, chan, what)
  local place = call('ZSCORE', QUEUE, owner)
  if place then
    place = int(tonumber(place))
    if not listens(chan) then chan = '' end
  else
    place = ticket
    if place == '' then                       -- later than everybody here, and about now
      local last = call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')
      place = int(math.max((tonumber(last[2]) or 0) + 1, now_us))
    elseif sub(place, 1, 1) == '-' then
      place = int(now_us + tonumber(place))
    end
    call('ZADD', QUEUE, place, owner)
  end
  call('HSET', WAIT, owner, rec .. ' ' .. chan .. what)
  call('PEXPIRE', QUEUE, 60000)
  call('PEXPIRE', WAIT, 60000)
  return place, chan ~= ''
end
)lua";

/// Hand-off in a queue of mutexes.
inline constexpr const char* hand_over = R"lua(
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
        local token, v = next_grant()
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
)lua";

/// One attempt, if quick() had no answer.
inline constexpr const char* enter = R"lua(
local function enter(owner, ttl, window, till, ticket, chan)
  if now > tonumber(till) then return 'l ' .. int(now) end
  if call('ZSCORE', TOMB, owner) then return 't' end
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
    return 'g ' .. token .. ' ' .. v
  end
  if not cur then
    local d = dispatch(owner)
    if d == 'none' or d == 'caller' then
      if d == 'caller' then forget(owner) end
      local token, told = next_grant()
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
)lua";

/// ARGV 1 channel ('' = none), then per lock: owner, ttl ms, window ms (0: do not queue), deadline
/// in server ms, ticket ('' = new). KEYS: five per lock. Answers one text per lock.
inline constexpr const char* enter_one = R"lua(
if now <= tonumber(ARGV[5]) then
  local got = quick(KEYS[1], KEYS[2], KEYS[3], KEYS[5], ARGV[2], ARGV[3])
  if got then return got end
end
)lua";
inline constexpr const char* enter_one_slow = R"lua(
use(1)
return enter(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[1])
)lua";
inline constexpr const char* enter_many = R"lua(
return for_each(#KEYS / 5, function(i)
  local k, a = 5 * i - 4, 5 * i - 3
  if now <= tonumber(ARGV[a + 3]) then
    local got = quick(KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 4], ARGV[a], ARGV[a + 1])
    if got then return got end
  end
  use(k)
  return enter(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[1])
end)
)lua";

/// The holder's own release without waiters. It needs neither clock nor state, since the holder
/// knows its token.
inline constexpr const char* quick_leave = R"lua(
local call = redis.call
local function quick_leave(lock, state, queue, owner, ghost, new_state, till)
  if ghost ~= '0' or new_state == '' or redis.pcall('GET', lock) ~= owner or
     call('EXISTS', queue) ~= 0 then return nil end
  call('DEL', lock)
  call('SET', state, new_state, 'PXAT', till)
  return 'r'
end
)lua";
inline constexpr const char* leave = R"lua(
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
  end
  pcall(dispatch, '')                         -- it is free, whoever cannot be told
  return result
end
)lua";
/// ARGV per lock: owner; how: r done, a abandoned, u never used; until when an unanswered request
/// of this owner may still arrive, server ms (0 = none); the state to leave behind, when the caller
/// knows its token, else ''; when that state expires. KEYS: five per lock.
inline constexpr const char* leave_one = R"lua(
local got = quick_leave(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[3], ARGV[4], ARGV[5])
if got then return got end
)lua";
inline constexpr const char* leave_one_slow = R"lua(
use(1)
return for_each(1, function() return leave(ARGV[1], ARGV[2], ARGV[3]) end)[1]
)lua";
inline constexpr const char* leave_many = R"lua(
return for_each(#KEYS / 5, function(i)
  local a = 5 * i - 4                         -- of the keys as well
  local got = quick_leave(KEYS[a], KEYS[a + 1], KEYS[a + 2], ARGV[a], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
  if got then return got end
  use(a)
  return leave(ARGV[a], ARGV[a + 1], ARGV[a + 2])
end)
)lua";

/// KEYS lock, state, tombs per lease; ARGV per lease: owner, ttl ms, '1' = first renewal after a
/// hand-off, deadline in server ms. Answers y renewed, a renewed and asked to release, n lost, x
/// revoked, 'l NOW' late, 'E WORDS' an error (as in all requests for many locks).
inline constexpr const char* renew = R"lua(
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
      if type(pcall_('ZSCORE', tombs, '?' .. owner)) == 'string' then
        out[i] = 'a'
        call('ZADD', tombs, int(now + ttl), '?' .. owner)
        if call('PTTL', tombs) <= tonumber(ttl) then call('PEXPIRE', tombs, ttl + 1) end
      end
    end
  else
    out[i] = type(pcall_('ZSCORE', tombs, owner)) == 'string' and 'x' or 'n'
  end
end
return out
)lua";

/// mode=plain: the compare-and-delete of the documentation, and its renewal. A value that begins
/// with '!' is revoked.
inline constexpr const char* plain_release =
    R"lua(if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end)lua";
inline constexpr const char* plain_renew = R"lua(
local cur = redis.call('GET', KEYS[1])
if cur == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if cur == '!' .. ARGV[1] then return 2 end
return 0
)lua";

}  // namespace holdfast::redis::lua
