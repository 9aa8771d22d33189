// What operators ask: holders and waiters, names that are held, break, and what this server
// promises.
#include <algorithm>

#include "backend.hpp"
#include "holdfast/spi/owner.hpp"
#include "wire/errors.hpp"
#include "wire/server_facts.hpp"

namespace holdfast::redis {
namespace {

constexpr char revoked_mark = '!';  // mode=plain

/// The state string, as lua_texts.hpp describes it.
struct State {
    std::uint64_t token = 0;
    char claimed = '0';
    std::string_view owner;
    explicit State(std::string_view s) {
        if (s.size() < 22 || !s.starts_with("1:")) return;
        token = static_cast<std::uint64_t>(number(s.substr(2, 16)));
        claimed = s[19];
        owner = s.substr(22);
    }
};

Holder person(std::string_view owner) {
    const spi::Owner o = spi::parse_owner(owner);
    Holder h;
    h.owner = owner;
    h.host = o.host;
    h.pid = o.pid;
    h.note = o.note;
    h.foreign = !o.ours;
    return h;
}

Holder holder_from(std::string_view value, std::int64_t left, std::string_view state_text,
                   std::int64_t now_us, bool plain) {
    const bool marked = plain && value.starts_with(revoked_mark);
    Holder h = person(marked ? value.substr(1) : value);
    if (left >= 0) h.ttl_left = milliseconds(left);
    h.revoked = marked;
    const State s(state_text);
    if (plain) return h;
    // An id of ours without our state: somebody copied it, or the state is gone.
    if (s.owner != value) {
        h.foreign = true;
        return h;
    }
    h.token.value = s.token;
    h.revoked = s.claimed == 'x';
    const std::int64_t held_us = now_us - static_cast<std::int64_t>(s.token);
    if (held_us >= 0) h.held_for = milliseconds(held_us / 1000);
    return h;
}

}  // namespace

awaitable<result<Inspection>> RedisBackend::inspect(std::string_view name,
                                                    boot_clock::time_point deadline,
                                                    std::string& detail) {
    Keys keys;
    keys.assign(shared_->options.prefix, name);
    const Script& script = Scripts::all().inspect;
    // A script that only reads may be asked for with rights to read only, from Redis 7.0 on.
    Command c;
    c.add("EVAL_RO").add(script.text()).add_number(5);
    keys.add_to(c);
    auto reply = co_await ask(c, nullptr, deadline, &detail);
    if (!reply && (reply.error() == errc::not_supported || reply.error() == errc::denied)) {
        detail.clear();
        begin(c, script, 5);
        keys.add_to(c);
        reply = co_await ask(c, &script, deadline, &detail);
    }
    if (!reply) co_return reply.error();
    if (reply->is_text()) {
        detail = "a key of this name holds something other than a lock";
        co_return make(Error::wrong_type);
    }
    if (!reply->is(Reply::Type::array) || reply->count < 4) co_return make(Error::protocol);
    const auto items = reply->items();
    Inspection out;
    out.name = name;
    const std::int64_t now_us = number(items[0].text);
    out.last_token.value = State(items[3].text).token;
    if (!items[1].text.empty())
        out.holders.push_back(holder_from(items[1].text, items[2].integer, items[3].text, now_us,
                                          shared_->options.plain));
    for (const Reply& waiter : items.subspan(4))
        out.waiters.push_back(person(waiter.text));
    co_return out;
}

awaitable<result<std::vector<std::string>>> RedisBackend::list(std::string_view prefix,
                                                               std::size_t limit,
                                                               boot_clock::time_point deadline,
                                                               std::string& detail) {
    const bool plain = shared_->options.plain;
    const std::string& ns = shared_->options.prefix;
    const std::string wanted = ns + std::string(prefix);
    const std::string pattern = plain ? literal_pattern(wanted) + "*" : "{*}:hf:s*";
    std::vector<std::string> names;
    std::string cursor = "0";
    do {
        Command c;
        c.add("SCAN").add(cursor).add("MATCH").add(pattern).add("COUNT").add("1000");
        if (plain) c.add("TYPE").add("string");
        const auto page = co_await ask(c, nullptr, deadline, &detail);
        if (!page) co_return page.error();
        if (!page->is(Reply::Type::array) || page->count != 2 || !page->elements[0].is_text() ||
            !page->elements[1].is(Reply::Type::array))
            co_return make(Error::protocol);
        cursor = page->elements[0].text;
        std::vector<std::string> locks;
        for (const Reply& key : page->elements[1].items()) {
            if (plain) {
                locks.push_back(key.text);
            } else if (const auto lock = lock_of_state(key.text);
                       lock && lock->starts_with(wanted)) {
                locks.emplace_back(*lock);
            }
        }
        if (locks.empty()) continue;
        c.clear();
        c.add("MGET");
        for (const std::string& lock : locks)
            c.add(lock);
        const auto values = co_await ask(c, nullptr, deadline, &detail);
        if (!values) co_return values.error();
        if (!values->is(Reply::Type::array) || values->count != locks.size())
            co_return make(Error::protocol);
        for (std::size_t i = 0; i < locks.size(); ++i) {
            const Reply& value = values->elements[i];
            if (!value.is_text()) continue;
            // In plain mode only the value distinguishes a lock from any other text.
            std::string_view owner = value.text;
            if (plain && owner.starts_with(revoked_mark)) owner.remove_prefix(1);
            if (plain && !spi::parse_owner(owner).ours) continue;
            names.push_back(locks[i].substr(ns.size()));
        }
    } while (cursor != "0");
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());  // SCAN may repeat itself
    if (names.size() > limit) names.resize(limit);
    co_return names;
}

awaitable<result<std::vector<Broken>>> RedisBackend::break_lock(std::string_view name,
                                                                const BreakOptions& options,
                                                                boot_clock::time_point deadline,
                                                                std::string& detail) {
    const bool plain = shared_->options.plain;
    Keys keys;
    keys.assign(shared_->options.prefix, name);
    const std::string only =
        options.if_token ? std::to_string(options.if_token->value) : std::string();
    const Script& script = Scripts::all().break_lock;
    Command c;
    begin(c, script, 5);
    keys.add_to(c);
    c.add(only).add(options.now ? "1" : "0").add(plain ? "1" : "0");
    const auto reply = co_await ask(c, &script, deadline, &detail);
    if (!reply) co_return reply.error();
    if (!reply->is(Reply::Type::array) || reply->count < 1) co_return make(Error::protocol);
    const auto items = reply->items();
    const std::string& what = items[0].text;
    if (what == "n") co_return make_error_code(errc::not_held);
    if (what == "t") {
        detail = "it is held with another token";
        co_return make_error_code(errc::not_held);
    }
    if (what == "f") {
        detail =
            "a client of another library holds it, which cannot be told to stop: only breaking it "
            "at once is possible";
        co_return make_error_code(errc::not_supported);
    }
    if (what == "k") {
        detail = "a key of this name holds something other than a lock";
        co_return make(Error::wrong_type);
    }
    if (what != "d" || items.size() != 5) co_return make(Error::protocol);
    Broken out;
    const std::int64_t left = items[3].integer;
    out.holder = holder_from(items[2].text, left, items[4].text, number(items[1].text), plain);
    out.holder.revoked = true;
    out.free_in = milliseconds(options.now ? 0 : std::max<std::int64_t>(left, 0));
    co_return std::vector<Broken>(1, out);
}

awaitable<result<Capabilities>> RedisBackend::probe(boot_clock::time_point deadline,
                                                    std::string& detail) {
    Capabilities found = capabilities_;
    const std::string where = shared_->options.display;
    Command c;
    c.add("INFO");
    auto info = co_await ask(c, nullptr, deadline, &detail);
    if (!info) {
        // Without the right to ask, nothing is known, and the lowest class it is.
        if (info.error() != errc::denied || detail.find("NOPERM") == detail.npos)
            co_return info.error();
        context_.events.warn(where +
                             ": this user may not ask INFO, so what the server keeps is unknown");
        detail.clear();
        co_return found;
    }
    const auto told = [&](std::string_view key) { return fact(info->text, key); };
    if (told("cluster_enabled") == "1") {
        detail = "this is a Redis Cluster";
        co_return make(Error::cluster);
    }
    if (const auto version = told("redis_version"); !version.empty() && too_old(version)) {
        detail = "the server is Redis " + std::string(version);
        co_return make(Error::too_old);
    }
    const bool primary = told("role") != "slave";
    if (!primary) context_.events.warn(where + ": this server is a replica and takes no locks");
    const bool replicas = !told("connected_slaves").empty() && told("connected_slaves") != "0";
    if (replicas)
        context_.events.warn(
            where +
            ": it has replicas, and replication is asynchronous: after a switch to "
            "one of them a lock can be held twice");
    const auto policy = told("maxmemory_policy");
    const bool evicts = !policy.empty() && policy != "noeviction" && told("maxmemory") != "0";
    if (evicts)
        context_.events.warn(
            where + ": maxmemory-policy is " + std::string(policy) +
            ": when memory is short the server may throw locks away; noeviction is "
            "right for locks");
    std::string lost_by_crash;
    if (told("aof_enabled") == "1") {
        c.clear();
        c.add("CONFIG").add("GET").add("*append*");
        std::string ignored;
        const auto config = co_await ask(c, nullptr, deadline, &ignored);
        if (!config && config.error() != errc::denied && config.error() != errc::not_supported)
            co_return config.error();
        lost_by_crash = unsynced(info->text, config ? &*config : nullptr);
        if (!lost_by_crash.empty())
            context_.events.warn(where + ": " + lost_by_crash + ": a crash may lose grants");
    } else {
        lost_by_crash = unsynced(info->text, nullptr);
    }
    const bool durable = lost_by_crash.empty();
    found.set(Capability::survives_server_crash, durable && !shared_->options.plain);
    if (durable && primary && !replicas && !evicts) found.safety = SafetyClass::b;
    co_return found;
}

}  // namespace holdfast::redis
