#include "checks.hpp"

#include <random>

#include "errors.hpp"
#include "holdfast/spi/common_checks.hpp"

namespace holdfast::resp {
namespace {

using spi::Facts;
using spi::Judgement;

enum Question : std::uint8_t { info, time, first_config, stored_script = 6, rights_script };

/// Nothing is there, so nothing is changed: XX sets no key that does not exist. Answers what was
/// refused. Inside of a script Redis 6 to 7.0, and 7.2 and later, have texts of their own for a
/// refusal.
constexpr const char* try_rights = R"lua(
local refused = {}
local function try(...)
  local answer = redis.pcall(...)
  local words = type(answer) == 'table' and answer.err or ''
  local function says(text) return string.find(words, text, 1, true) end
  if says('NOPERM') or says('executing the script') or says('ACL failure in script') then
    local on = ''
    if string.find(words, ' key', 1, true) then on = ' on ' .. select(2, ...) end
    if string.find(words, ' channel', 1, true) then on = ' to its channel' end
    refused[#refused + 1] = (...) .. on
  end
end
local lock, beside, channel = KEYS[1], KEYS[2], ARGV[1]
try('GET', lock)
try('SET', lock, '', 'XX')
try('PEXPIRE', lock, 1)
try('DEL', lock)
if beside then
  try('TIME')
  try('GET', beside)
  try('SET', beside, '', 'XX')
  try('EXISTS', beside)
  try('PTTL', beside)
  try('PEXPIREAT', beside, 1)
  try('ZADD', beside, 'XX', 1, 'a')
  try('ZSCORE', beside, 'a')
  try('ZRANGE', beside, 0, 0)
  try('ZREM', beside, 'a')
  try('ZCARD', beside)
  try('ZREMRANGEBYSCORE', beside, 0, 0)
end
if channel ~= '' then
  try('ZRANK', beside, 'a')
  try('HGET', beside, 'a')
  try('HDEL', beside, 'a')
  try('PUBSUB', 'NUMSUB', channel)
  try('PUBLISH', channel, '')
end
return table.concat(refused, ', ')
)lua";

void refuse(Facts& facts, std::string_view what) {
    const std::string_view before = facts.text("refused");
    facts.set("refused", std::string(before) + (before.empty() || what.empty() ? "" : ", ") +
                             std::string(what));
}

bool is_denied(const Reply& r) {
    return r.is(Reply::Type::error) && from_reply(r.text) == make(Error::denied);
}

/// False: unknown, since INFO was not answered.
bool asked(const Facts& f) {
    return f.has("redis_version") || f.has("role");
}

Judgement not_asked() {
    return spi::unknown("this user may not ask INFO");
}

/// A share of a limit, in percent; none where there is no limit.
std::optional<long long> percent(const Facts& f, std::string_view part, std::string_view whole) {
    const auto p = f.number(part), w = f.number(whole);
    if (!p || !w || *w <= 0) return {};
    return static_cast<long long>(100.0 * static_cast<double>(*p) / static_cast<double>(*w));
}

}  // namespace

std::string unused_name() {
    std::random_device random;
    return "doctor-" + std::to_string(random()) + '-' + std::to_string(random());
}

std::vector<std::vector<std::string>> questions(const Touched& touched) {
    std::vector<std::string> rights{"EVAL", try_rights, touched.sibling.empty() ? "1" : "2",
                                    touched.lock};
    if (!touched.sibling.empty()) rights.push_back(touched.sibling);
    rights.push_back(touched.channel);
    // Several patterns in one CONFIG GET need Redis 7. No script has that digest.
    std::vector<std::vector<std::string>> all{{"INFO"},
                                              {"TIME"},
                                              {"CONFIG", "GET", "*append*"},
                                              {"CONFIG", "GET", "stop-writes-on-bgsave-error"},
                                              {"CONFIG", "GET", "min-replicas-*"},
                                              {"CONFIG", "GET", "timeout"},
                                              {"EVALSHA", std::string(40, '0'), "0"}};
    if (!touched.lock.empty()) all.push_back(std::move(rights));
    return all;
}

void note_answer(Facts& facts, std::size_t question, const Reply* reply) {
    if (reply == nullptr) return;
    if (question == info && reply->is_text()) spi::note_lines(facts, reply->text, ":");
    if (question == stored_script && is_denied(*reply)) refuse(facts, "EVALSHA");
    if (question == rights_script && is_denied(*reply)) refuse(facts, "EVAL on the keys of a lock");
    if (question == rights_script && reply->is_text()) refuse(facts, reply->text);
    const auto items = reply->items();
    if (!reply->is(Reply::Type::array)) return;
    if (question == time) {
        if (items.size() != 2) return;
        facts.set("time_us", (spi::bounded_length<std::chrono::seconds>(number(items[0].text)) +
                              spi::bounded_length<std::chrono::microseconds>(number(items[1].text)))
                                 .count());
    } else if (question >= first_config) {
        for (std::size_t i = 0; i + 1 < items.size(); i += 2)
            if (items[i].is_text() && items[i + 1].is_text())
                facts.set(items[i].text, items[i + 1].text);
    }
}

void note_times(Facts& facts, std::chrono::system_clock::time_point before,
                std::chrono::system_clock::time_point after) {
    const auto server = facts.number("time_us");
    if (!server) return;
    spi::note_clock(facts, *server, before, after);
}

namespace judge {

Found answers(const Facts& f) {
    return f.has("silent") ? spi::slow(std::string(f.text("silent"))) : spi::sound();
}

Found answered(const Facts& f) {
    return asked(f) ? spi::sound("Redis " + std::string(f.text("redis_version"))) : not_asked();
}

Found persistence(const Facts& f) {
    if (!asked(f)) return not_asked();
    if (f.text("aof_enabled") == "1") return spi::sound("it keeps an append-only file");
    return spi::unsafe("it keeps no append-only file (appendonly no)");
}

Found append_only_file(const Facts& f) {
    if (f.text("aof_enabled") != "1") return {};
    const auto failed = [&](std::string_view key) { return f.has(key) && f.text(key) != "ok"; };
    if (failed("aof_last_write_status"))
        return spi::unsafe("its last write to the append-only file failed");
    if (failed("aof_last_bgrewrite_status"))
        return spi::unsafe("its append-only file could not be rewritten, and may be incomplete");
    // While the file is made for the first time, what is written meanwhile is no part of it yet.
    const bool rewriting =
        f.text("aof_rewrite_in_progress") == "1" || f.text("aof_rewrite_scheduled") == "1";
    if (rewriting && f.text("aof_last_rewrite_time_sec") == "-1")
        return spi::unsafe("its append-only file is being made, and counts only once that is done");
    return spi::sound();
}

Found fsync(const Facts& f) {
    if (f.text("aof_enabled") != "1") return {};
    if (!f.has("appendfsync")) return spi::unknown("appendfsync: this user may not ask CONFIG GET");
    const std::string words = "appendfsync is " + std::string(f.text("appendfsync"));
    return f.text("appendfsync") == "always" ? spi::sound(words) : spi::unsafe(words);
}

Found fsync_on_rewrite(const Facts& f) {
    if (f.text("aof_enabled") != "1") return {};
    if (!f.has("no-appendfsync-on-rewrite"))
        return spi::unknown("no-appendfsync-on-rewrite: this user may not ask CONFIG GET");
    const std::string words =
        "no-appendfsync-on-rewrite is " + std::string(f.text("no-appendfsync-on-rewrite"));
    return f.text("no-appendfsync-on-rewrite") == "no" ? spi::sound(words) : spi::unsafe(words);
}

Found role(const Facts& f) {
    if (!asked(f)) return not_asked();
    if (f.text("role") == "slave") return spi::unsafe("this server is a replica");
    if (f.has("role") && f.text("role") != "master")
        return spi::unsafe("its role is " + std::string(f.text("role")));
    return spi::sound();
}

Found replicas(const Facts& f) {
    if (!asked(f)) return not_asked();
    const auto n = f.number("connected_slaves").value_or(0);
    return n > 0 ? spi::unsafe("it has " + std::to_string(n) + (n == 1 ? " replica" : " replicas") +
                               ", and replication is asynchronous")
                 : spi::sound();
}

Found eviction(const Facts& f) {
    if (!asked(f)) return not_asked();
    const auto policy = f.text("maxmemory_policy");
    if (policy.empty() || policy == "noeviction" || f.number("maxmemory").value_or(0) == 0)
        return spi::sound();
    return spi::unsafe("maxmemory-policy is " + std::string(policy));
}

Found memory(const Facts& f) {
    const auto used = percent(f, "used_memory", "maxmemory");
    if (!used) return {};
    const std::string words = std::to_string(*used) + " % of maxmemory is in use";
    return *used >= 90 ? spi::slow(words) : spi::sound(words);
}

Found writes_stopped(const Facts& f) {
    if (!f.has("rdb_last_bgsave_status")) return {};
    if (f.text("rdb_last_bgsave_status") == "ok") return spi::sound();
    if (f.text("stop-writes-on-bgsave-error") == "no") return spi::slow("its last snapshot failed");
    return spi::slow(
        "its last snapshot failed, and stop-writes-on-bgsave-error refuses writes until one "
        "succeeds");
}

Found replicas_required(const Facts& f) {
    const auto least = f.number("min-replicas-to-write").value_or(0);
    const auto there = f.number("connected_slaves").value_or(0);
    // Either of both switches it off.
    if (least == 0 || f.number("min-replicas-max-lag") == 0) return {};
    const std::string words = "min-replicas-to-write is " + std::to_string(least) + ", and " +
                              std::to_string(there) + " are connected";
    return there < least ? spi::slow(words) : spi::sound(words);
}

Found connections(const Facts& f) {
    const auto used = percent(f, "connected_clients", "maxclients");
    if (!used) return {};
    const std::string words = std::to_string(*used) + " % of maxclients are connected";
    return *used >= 90 ? spi::slow(words) : spi::sound(words);
}

Found idle_timeout(const Facts& f) {
    const auto seconds = f.number("timeout");
    if (!seconds) return {};
    const std::string words = "timeout is " + std::to_string(*seconds) + " s";
    return *seconds > 0 && *seconds < 60 ? spi::slow(words) : spi::sound(words);
}

Found loading(const Facts& f) {
    if (!f.has("loading")) return {};
    return f.text("loading") == "1" ? spi::slow("it is loading its data") : spi::sound();
}

Found fork_time(const Facts& f) {
    const auto us = f.number("latest_fork_usec");
    if (!us || *us == 0) return {};
    const std::string words = "its last fork stopped it for " + std::to_string(*us / 1000) + " ms";
    return *us > 250'000 ? spi::slow(words) : spi::sound(words);
}

}  // namespace judge

bool keeps_each_write(const spi::Facts& f) {
    for (const auto judgement :
         {judge::persistence, judge::append_only_file, judge::fsync, judge::fsync_on_rewrite})
        if (const auto found = judgement(f); found && found->verdict != Verdict::sound)
            return false;
    return true;
}

std::vector<spi::Check> with_node_checks(std::vector<spi::Check> first) {
    static constexpr spi::Check shared[] = {
        {"redis.rights", spi::rights_consequence,
         "ACL SETUSER the user what the backend's page lists under Permissions", spi::judge_rights},
        {"redis.eviction",
         "when memory is short the server throws locks away, and a second client acquires them",
         "CONFIG SET maxmemory-policy noeviction", judge::eviction},
        {"redis.clock", spi::clock_consequence, spi::clock_remedy, spi::judge_clock},
        {"redis.round_trip", spi::round_trip_consequence, spi::round_trip_remedy,
         spi::judge_round_trip},
        {"redis.memory", "a full server refuses every lock",
         "raise maxmemory, or find what fills it", judge::memory},
        {"redis.writes", "no lock can be acquired then",
         "find out why the save failed (the server's log): a full disk, or no memory to fork",
         judge::writes_stopped},
        {"redis.replicas_required", "the server refuses every write until more are connected",
         "restore the replicas, or lower min-replicas-to-write", judge::replicas_required},
        {"redis.connections", "new clients will be refused",
         "raise maxclients, and ulimit -n of the server", judge::connections},
        {"redis.idle_timeout", "it closes idle connections, and the next request connects anew",
         "CONFIG SET timeout 0", judge::idle_timeout},
        {"redis.loading", "it answers no request until it has loaded them", "wait", judge::loading},
        {"redis.fork", "leases with a short ttl are lost meanwhile",
         "switch transparent huge pages off, give it less data, or a ttl of several seconds",
         judge::fork_time},
    };
    first.insert(first.end(), std::begin(shared), std::end(shared));
    return first;
}

}  // namespace holdfast::resp
