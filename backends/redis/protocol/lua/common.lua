--- What all scripts share. scripts.cpp assembles each of them from sections; lines with three dashes are not sent.
---
--- The state of a lock is one string, "1:FFFFFFFFFFFFFFFF:CV:OWNER":
---   1      format number; 2: readers or permits are held or waited for (units.lua), and a mutex's
---          request is answered "u": ask with the units
---   F      token of the last grant, 16 digits
---   C      0 handed over and not yet claimed, 1 claimed, x revoked
---   V      how the previous holder ended, as reported to the holder or, without one, to the next
---          holder: n none, r released, a abandoned, c crashed, u unknown
---   OWNER  owner of the last grant until it is released; then empty
--- While the lock is held, the state is kept for the ttl and eight days, which renewals move, so
--- that a name whose holder crashed is forgotten some day; after a release for 24 hours. Both count
--- from the token if that is ahead of the clock. A text of another form, or with a token that could
--- not grow further as a Lua number, is answered "k" and left as it is. Numbers become text by
--- string.format only: Lua's own conversion keeps 14 digits.

--- The beginning of all scripts.
-- name: clock
local call, pcall_, format, sub, match = redis.call, redis.pcall, string.format, string.sub, string.match
local t = call('TIME')
local now_us = t[1] * 1000000 + t[2]
local now = math.floor(now_us / 1000)
local function int(x) return format('%.0f', x) end

--- Reads a state, and how long it is kept. Behind the fast paths, which have no time for it.
-- name: state
local HELD, FREE, MOST = 700000000, 86400000, 9007000000000000

local function parse(s)                       -- last token, claimed, verdict, format; nil: another form
  local form, last, c, v = match(s, '^([12]):(%d+):([01x])([nracu]):')
  if not form or #last ~= 16 or tonumber(last) > MOST then return nil end
  return last, c, v, form
end

-- Until when a held lock's state is kept: its token counts, or now if that is later.
local function till(f, ttl) return int(math.max(math.floor(f / 1000), now) + ttl + HELD) end

local function words(e) return type(e) == 'table' and e.err or e end

--- A lock's failure is the answer for that lock only, not for others of the same call.
-- name: for_each
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

--- A free lock without waiters: most grants end here. `hold`, `take` and `of` are those of readers
--- and permits (units.lua).
-- name: quick
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
    if #old > 22 and sub(old, 23) ~= owner then
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

--- State and queue.
-- name: line
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

-- The next token, what its holder is told, the format. One that asks again never worked under its
-- earlier grant.
local function next_grant(owner)
  local f, c, v, o, form = read()
  if o ~= '' and o ~= owner then v = (v == 'c' or c ~= '0') and 'c' or 'u' end
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

local function marked(mark)                   -- marks that have lapsed stay as long as others do
  local till = call('ZSCORE', TOMB, mark)
  return till and tonumber(till) >= now
end

local function gone(owner)                    -- t: it has left; x: it was broken before it asked again
  if not marked(owner) then return nil end
  return marked('!' .. owner) and 'x' or 't'
end

local function asked(owner, px)               -- whether it was asked to release, until its new end
  if not marked('?' .. owner) then return false end
  bury('?' .. owner, now + px)
  return true
end

-- At this server: a message also reaches those that listen at its replicas. Without the permission
-- to ask, everybody is taken to listen.
local function listens(chan)
  if chan == '' then return false end
  local named = pcall_('PUBSUB', 'NUMSUB', chan)
  return named.err ~= nil or tonumber(named[2]) > 0
end

-- So many us ago if it is '-' and a number.
local function place_of(ticket)
  return sub(ticket, 1, 1) == '-' and int(now_us + tonumber(ticket)) or ticket
end

-- To the place that it had, if it was passed over meanwhile.
local function come_back(owner, ticket)
  if ticket ~= '' and call('EXISTS', QUEUE) == 1 and not call('ZSCORE', QUEUE, owner) then
    call('ZADD', QUEUE, place_of(ticket), owner)
  end
end

-- Its place in line: by the ticket, or the last one.
-- One that comes again and does not listen is recorded without its channel: nobody passes it from
-- then on, as nobody passes one that polls. Answers the place, and whether it can be notified.
local function stand(owner, ticket, rec, chan, what)
  local place = call('ZSCORE', QUEUE, owner)
  if place then
    place = int(tonumber(place))
    if not listens(chan) then chan = '' end
  else
    if ticket == '' then                      -- later than everybody here, and about now
      local last = call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')
      place = int(math.max((tonumber(last[2]) or 0) + 1, now_us))
    else
      place = place_of(ticket)
    end
    call('ZADD', QUEUE, place, owner)
  end
  call('HSET', WAIT, owner, rec .. ' ' .. chan .. what)
  call('PEXPIRE', QUEUE, 60000)
  call('PEXPIRE', WAIT, 60000)
  return place, chan ~= ''
end
