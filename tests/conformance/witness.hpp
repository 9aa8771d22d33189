// Who is inside of which name at this moment: kept in one place, by a server that knows nothing of
// Holdfast, so that members of several processes are judged together.
#pragma once
#include <cstdint>
#include <holdfast/clock.hpp>
#include <string>

#include "holdfast/lab/redis_connection.hpp"

namespace suite {

/// One connection to it. Members come in after they were granted, and leave before they release:
/// whom the witness sees together the backend has let in together.
class Witness {
public:
    explicit Witness(std::uint16_t port) : store_("127.0.0.1", port) {}

    /// `who` is inside with so many units, also of one that was. Complains when that is more than
    /// `limit` with those who are inside; one whose time is over is not.
    void enter(const std::string& name, const std::string& who, std::uint32_t units,
               std::uint32_t limit, holdfast::boot_clock::time_point until) {
        static const std::string judged = R"lua(
local units, till, now, others = tonumber(ARGV[2]), ARGV[4], tonumber(ARGV[5]), ''
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local taken, over = string.match(all[i + 1], '^(%d+) (%d+)$')
  if all[i] == ARGV[1] then
  elseif tonumber(over) <= now then
    redis.call('HDEL', KEYS[1], all[i])
  else
    units = units + taken
    others = others .. ' ' .. all[i] .. ':' .. taken
  end
end
if units > tonumber(ARGV[3]) then
  redis.call('RPUSH', 'overlaps', KEYS[1] .. ': ' .. ARGV[1] .. ':' .. ARGV[2] .. ' met' .. others)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. till)
return redis.call('INCR', 'grants'))lua";
        store_.command({"EVAL", judged, "1", name, who, std::to_string(units),
                        std::to_string(limit), micros(until), micros(holdfast::boot_clock::now())});
    }
    void leave(const std::string& name, const std::string& who) {
        store_.command({"HDEL", name, who});
    }
    /// A round trip, in which others may come in.
    void look() { store_.command({"PING"}); }

    long long grants() { return number({"GET", "grants"}); }
    long long overlaps() { return number({"LLEN", "overlaps"}); }
    /// The first complaints in words.
    std::string words() {
        std::string out;
        for (const auto& line : store_.command({"LRANGE", "overlaps", "0", "4"}).elements)
            out += line.text + '\n';
        return out;
    }

    /// What the members did, for the report: a trial in which nothing of a kind happened says so.
    void did(const std::string& what) { store_.command({"HINCRBY", "did", what, "1"}); }
    std::string report() {
        std::string out;
        const auto all = store_.command({"HGETALL", "did"}).elements;
        for (std::size_t i = 0; i + 1 < all.size(); i += 2)
            out += ", " + all[i + 1].text + ' ' + all[i].text;
        return out;
    }

    /// All begin together, or slow starts would keep them apart without any lock.
    void ready() { store_.command({"INCR", "ready"}); }
    long long members_ready() { return number({"GET", "ready"}); }
    void say(const std::string& word) { store_.command({"SET", word, "1"}); }
    bool said(const std::string& word) { return number({"EXISTS", word}) > 0; }

private:
    static std::string micros(holdfast::boot_clock::time_point t) {
        return std::to_string(t.time_since_epoch().count() / 1000);
    }
    long long number(const std::vector<std::string>& command) {
        const auto reply = store_.command(command);
        return reply.text.empty() ? reply.integer : std::stoll(reply.text);
    }
    holdfast::lab::RedisConnection store_;
};

}  // namespace suite
