// The Lua that each node runs.
//
// What a node keeps of a name beside the lock itself is one string, "1:FFFFFFFFFFFFFFFF:OWNER": the
// format, the highest token that was written to this node (16 digits, so that texts compare as
// numbers do), and for whom. It expires a day after the token, or after its last use.
// A number becomes text by string.format only: Lua's own conversion keeps 14 digits.
#pragma once

namespace holdfast::redlock::lua {

/// Begins whatever has a deadline.
inline constexpr const char* clock = R"lua(
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
)lua";

/// KEYS lock, state; ARGV 1 owner, 2 ttl ms, 3 deadline in this node's ms, 4 token ('': none is
/// wanted), 5 when the state expires. One vote: the lock is taken if it is free, and the token is
/// written if it is higher than what is there. Answers:
///   g          taken, the token is written
///   h TOKEN    taken, but the token is too low: ask again with one higher than this
///   b MS       somebody else has it, for so long (-1: for ever)
///   l MS       came too late, and it is now
///   k          the key holds something else
/// A token far behind this node's clock is refused, too: a client that has seen no clock begins
/// with 1, and tokens are to grow even where a node has lost its data.
inline constexpr const char* enter = R"lua(
local function enter(lock, state, owner, ttl, deadline, token, till)
  if now > tonumber(deadline) then return 'l ' .. string.format('%.0f', now) end
  if not call('SET', lock, owner, 'NX', 'PX', ttl) then
    local cur = redis.pcall('GET', lock)
    if type(cur) == 'table' then return 'k' end
    if cur ~= owner then return 'b ' .. string.format('%.0f', call('PTTL', lock)) end
    call('PEXPIRE', lock, ttl)
  end
  if token == '' then return 'g' end
  local low
  local s = redis.pcall('GET', state)
  if s then
    if type(s) == 'table' or string.sub(s, 1, 2) ~= '1:' then
      call('DEL', lock)
      return 'k'
    end
    local last = string.sub(s, 3, 18)
    if last > token or (last == token and string.sub(s, 20) ~= owner) then low = last end
  end
  if low or tonumber(token) < (now - 3600000) * 1000 then
    local us = string.format('%016.0f', now * 1000)
    return 'h ' .. (low and low > us and low or us)
  end
  call('SET', state, '1:' .. token .. ':' .. owner, 'PXAT', till)
  return 'g'
end
)lua";
inline constexpr const char* enter_one = R"lua(
return enter(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
)lua";
/// The same for many locks: KEYS and ARGV lock by lock, and an answer each.
inline constexpr const char* enter_many = R"lua(
local out = {}
for i = 1, #KEYS / 2 do
  local k, a = 2 * i - 1, 5 * i - 4
  out[i] = enter(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
end
return out
)lua";

/// KEYS lock; ARGV owner. Answers 1 deleted, 2 somebody else's, 0 nothing there.
inline constexpr const char* release =
    R"lua(local v = redis.pcall('GET', KEYS[1])
if v == ARGV[1] then return redis.call('DEL', KEYS[1]) end
if v then return 2 end
return 0)lua";
/// The same for many locks.
inline constexpr const char* release_many = R"lua(
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
)lua";

/// KEYS lock, state; ARGV 1 owner, 2 ttl ms, 3 deadline in this node's ms, 4 when the state expires
/// ('': there is none). Answers y renewed, x revoked, e nothing there, n somebody else's, l MS
/// late. Never makes a lock: a renewal that comes late must not bring one back.
inline constexpr const char* renew = R"lua(
local function renew(lock, state, owner, ttl, deadline, till)
  if now > tonumber(deadline) then return 'l ' .. string.format('%.0f', now) end
  local cur = redis.pcall('GET', lock)
  if cur == owner then
    call('PEXPIRE', lock, ttl)
    if till ~= '' then call('PEXPIREAT', state, till) end
    return 'y'
  end
  if cur == '!' .. owner then return 'x' end
  if not cur then return 'e' end
  return 'n'
end
)lua";
inline constexpr const char* renew_one = R"lua(
return renew(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
)lua";
/// The same for many locks.
inline constexpr const char* renew_many = R"lua(
local out = {}
for i = 1, #KEYS / 2 do
  local k, a = 2 * i - 1, 4 * i - 3
  out[i] = renew(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
end
return out
)lua";

/// KEYS lock, state. Answers {value or '', PTTL, state or ''}, or 'k'.
inline constexpr const char* inspect = R"lua(
local cur = redis.pcall('GET', KEYS[1])
local s = redis.pcall('GET', KEYS[2])
if type(cur) == 'table' or type(s) == 'table' then return 'k' end
return {cur or '', redis.call('PTTL', KEYS[1]), s or ''}
)lua";

/// KEYS lock; ARGV 1 the value to break, 2 '1' = free at once. A mark in front of the value keeps
/// the key until its ttl is over and lets no renewal succeed. Answers {d, PTTL}, or {n} where it is
/// not there.
inline constexpr const char* break_lock = R"lua(
local cur = redis.pcall('GET', KEYS[1])
if cur ~= ARGV[1] and cur ~= '!' .. ARGV[1] then return {'n'} end
local left = redis.call('PTTL', KEYS[1])
if ARGV[2] == '1' or left < 0 then
  redis.call('DEL', KEYS[1])
elseif cur == ARGV[1] then
  redis.call('SET', KEYS[1], '!' .. cur, 'KEEPTTL')
end
return {'d', left}
)lua";

}  // namespace holdfast::redlock::lua
