--- Lua for operators: shows holders and waiters, breaks holders, and asks them to release.

--- Lists holders.
-- name: holders
local function marks(tombs)                   -- those that have not lapsed
  local all, words = {}, call('ZRANGE', tombs, 0, 9999, 'WITHSCORES')
  for i = 1, #words, 2 do all[words[i]] = tonumber(words[i + 1]) >= now end
  return all
end

-- {owner, end, permits} of each that holds a part, in the order of their ends; and until when the
-- rest stays closed.
local function sharers(hold)
  local all, of, closed = {}, {}, -1
  local words = call('ZRANGE', hold, 0, -1, 'WITHSCORES')
  for i = 1, #words, 2 do
    local owner, ends = match(words[i], '^[^#]*'), tonumber(words[i + 1])
    if ends >= now and sub(owner, 1, 1) == '=' then
      closed = ends
    elseif ends >= now then
      if not of[owner] then
        of[owner] = {owner, ends, 0}
        all[#all + 1] = of[owner]
      end
      of[owner][3] = of[owner][3] + 1
    end
  end
  return all, closed
end

local function row(owner, left, permits, has)
  return int(left) .. ' ' .. int(permits) .. ' ' .. (has['!' .. owner] and 'x' or '-') ..
         (has['?' .. owner] and 'a' or '-') .. ' ' .. owner
end

--- KEYS six. Answers 'k', or {now us, value of the lock's key, state or '', ms for which it is
--- closed without a holder or -1, number of holders, the holders, then the waiters in order}. A
--- holder is "LEFT PERMITS MARKS OWNER" (LEFT -1: it does not expire), a waiter "TAKE OF OWNER".
-- name: inspect
local cur = pcall_('GET', KEYS[1])
local s = pcall_('GET', KEYS[2])
if type(cur) == 'table' or type(s) == 'table' then return 'k' end
cur = cur or ''
local out = {int(now_us), cur, s or '', '-1', '0'}
local left, has = call('PTTL', KEYS[1]), marks(KEYS[5])
if cur == 'hf:m' then
  out[4] = int(left)
elseif string.find(cur, '^hf:[sp]:%d+$') then
  local all, closed = sharers(KEYS[6])
  if closed >= 0 then out[4] = int(closed - now) end
  for _, h in ipairs(all) do out[#out + 1] = row(h[1], h[2] - now, h[3], has) end
  out[5] = int(#all)
elseif cur ~= '' then
  out[6] = row(cur, left, 1, has)
  out[5] = '1'
end
for _, m in ipairs(call('ZRANGE', KEYS[3], 0, 9999)) do
  local rec = call('HGET', KEYS[4], m)
  local alive, take, of
  if rec then alive, take, of = match(rec, '^(%d+) %d+ %S* ?(%d*) ?(%d*)$') end
  if alive and tonumber(alive) >= now then
    if of == '' then take, of = '4294967295', '4294967295' end
    out[#out + 1] = take .. ' ' .. of .. ' ' .. m
  end
end
return out

--- KEYS six; ARGV 1 only this token ('' = any); 2 what: 0 no renewal succeeds any more, 1 free at
--- once, ? asked to release; 3 '1' = plain mode; 4 and so on: only these owners ('' = any). Answers
--- {what, now us, value of the lock's key, state, holders as in inspect}; what: d done, n not held,
--- t other holders only, f foreign (needs now), k another kind, m nothing done: these owners are
--- too many for one call, which would keep all other clients of the server waiting. Name some of
--- them at a time.
-- name: tell_holders
local only, how, plain, whom = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local mark = ({['0'] = '!', ['1'] = '', ['?'] = '?'})[how]
use_units(1)
if not look() then return {'k'} end
if not cur or cur == 'hf:m' then return {'n'} end
local left = call('PTTL', LOCK)
local s = call('GET', STATE) or ''
local f, c, v, o, form = read()
if not f then return {'k'} end
local answer = {'d', int(now_us), cur, s}
if used < ALL and not plain then
  local token, all = kind == ALL and int(tonumber(shared)) or '', {}
  if only ~= '' and only ~= token then return {'t'} end
  if whom == '' and used > 128 then
    answer[1] = 'm'
    for _, m in ipairs(call('ZRANGE', HOLD, 0, -1)) do
      if not string.find(m, '^=') and not string.find(m, '#', 1, true) then answer[#answer + 1] = m end
    end
    return #answer > 4 and answer or {'n'}
  elseif whom == '' then
    all = sharers(HOLD)
    if #all == 0 then return {'n'} end
  else
    for i = 4, #ARGV do
      local ends, permits = member(ARGV[i]), 1
      if ends then
        while call('ZSCORE', HOLD, ARGV[i] .. '#' .. int(permits + 1)) do permits = permits + 1 end
        all[#all + 1] = {ARGV[i], ends, permits}
      end
    end
    if #all == 0 then return {'t'} end
  end
  for _, h in ipairs(all) do
    if how == '1' then
      drop(h[1])
      call('ZADD', TOMB, int(h[2]), '!' .. h[1])
    end
    call('ZADD', TOMB, int(h[2]), mark .. h[1])
  end
  bury(mark .. all[1][1], all[1][2])          -- all of them are kept long enough
  if how == '1' then
    vacate(f, v, form)
    look()
    pcall(dispatch, '')
  end
  for _, h in ipairs(all) do                  -- of thousands of marks only theirs
    local has = {}
    for _, m in ipairs({'!' .. h[1], '?' .. h[1]}) do has[m] = marked(m) end
    answer[#answer + 1] = row(h[1], h[2] - now, h[3], has)
  end
  return answer
end
local token = ''
if o == cur then token = int(f) end
if only ~= '' and only ~= token or whom ~= '' and whom ~= cur then return {'t'} end
if how == '1' then
  call('DEL', LOCK)
  if o == cur then
    keep_free(form_of(form), f, 'c')
    if left > 0 then
      bury(cur, now + left)
      bury('!' .. cur, now + left)
    end
  end
  if not plain then
    look()
    pcall(dispatch, '')
  end
elseif how == '?' then
  if o ~= cur or plain then return {'f'} end
  bury(mark .. cur, now + math.max(left, 0))
elseif plain and left >= 0 then
  if sub(cur, 1, 1) ~= '!' then call('SET', LOCK, '!' .. cur, 'KEEPTTL') end
elseif o == cur then
  pcall_('ZREMRANGEBYSCORE', TOMB, '-inf', int(now))  -- without memory only a script that has written may SET
  call('SET', STATE, form .. ':' .. format('%016.0f', f) .. ':x' .. v .. ':' .. o, 'KEEPTTL')
else
  return {'f'}
end
answer[5] = row(answer[3], left, 1, marks(TOMB))
return answer
