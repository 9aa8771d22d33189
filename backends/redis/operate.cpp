// What operators ask: holders and waiters, names that are held, break, requests to release.
#include <algorithm>

#include "../resp/errors.hpp"
#include "../resp/server_facts.hpp"
#include "backend.hpp"
#include "holdfast/spi/bounded_time.hpp"
#include "holdfast/spi/holder.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::redis {
namespace {

constexpr char revoked_mark = '!';  // mode=plain
// So many holders of one name are broken, or asked, by one call: the server serves nobody
// meanwhile.
constexpr std::size_t most_told = 64;

/// The state string, as lua/common.lua describes it.
struct State {
    std::uint64_t token = 0;
    char claimed = '0';
    std::string_view owner;
    explicit State(std::string_view s) {
        if (s.size() < 22 || !(s.starts_with("1:") || s.starts_with("2:"))) return;
        token = static_cast<std::uint64_t>(number(s.substr(2, 16)));
        claimed = s[19];
        owner = s.substr(22);
    }
};

/// What is in the lock's key, as lua/units.lua describes it.
struct Content {
    bool several = false;  ///< the key is a marker, and holders have parts of it
    spi::Units units;      ///< of one of them
    FencingToken token;
    explicit Content(std::string_view value) {
        if (value.starts_with("hf:s:")) {
            several = true, units.take = 1, units.mode = Mode::shared;
            token.value = static_cast<std::uint64_t>(number(value.substr(5)));
        } else if (value.starts_with("hf:p:")) {
            several = true, units.take = 1;
            units.of = static_cast<std::uint32_t>(number(value.substr(5)));
        }
    }
};

/// What the scripts say of a name, and what of it they say of each holder.
struct Told {
    std::int64_t now_us;
    std::string_view value, state;
    bool plain;

    spi::Survey::Member holder(std::string_view row) const {
        const std::int64_t left = number(word(row));
        const auto permits = static_cast<std::uint32_t>(number(word(row)));
        const std::string_view marks = word(row);
        const bool broken = plain && row.starts_with(revoked_mark);
        spi::Survey::Member m{spi::holder_of(broken ? row.substr(1) : row)};
        Holder& h = m.holder;
        if (left >= 0) h.ttl_left = m.free_in = spi::bounded_length<milliseconds>(left);
        h.revoked = broken;
        if (plain) return m;
        h.asked = marks.find('a') != marks.npos;
        if (const Content in(value); in.several) {
            h.token = in.token;
            h.revoked = marks.find('x') != marks.npos;
            m.units = in.units;
            if (in.units.permits()) m.units.take = permits;
            return m;
        }
        const State s(state);
        // An id of ours without our state: somebody copied it, or the state is gone.
        if (s.owner != value) {
            h.foreign = true;
            return m;
        }
        h.token.value = s.token;
        h.revoked = s.claimed == 'x';
        const std::int64_t held_us = now_us - static_cast<std::int64_t>(s.token);
        if (held_us >= 0) h.held_for = spi::bounded_length<milliseconds>(held_us / 1000);
        return m;
    }
};

/// Why no holder was reached, by the first word of the script's answer.
spi::Failure not_told(std::string_view said, spi::Tell tell) {
    if (said == "d" || said == "m") return {};
    if (said == "n") return errc::not_held;
    if (said == "t") return {errc::not_held, "it is held by another owner, or with another token"};
    if (said == "f") return {errc::not_supported, spi::foreign_holder(tell, "key")};
    if (said == "k")
        return {make(Error::wrong_type), "a key of this name holds something other than a lock"};
    return make(Error::protocol);
}

spi::Survey::Member waiter(std::string_view row) {
    spi::Units units;
    units.take = static_cast<std::uint32_t>(number(word(row)));
    units.of = static_cast<std::uint32_t>(number(word(row)));
    if (!units.permits() && !units.exclusive()) units.mode = Mode::shared;
    return {spi::holder_of(row), units};
}

}  // namespace

awaitable<spi::Answer<spi::Survey>> RedisBackend::survey(std::string_view name,
                                                         boot_clock::time_point deadline) {
    Keys keys;
    std::string parts;
    keys.assign(shared_->options.prefix, name);
    auto unusable = co_await still_usable(deadline);
    if (unusable) co_return unusable;
    const Script& script = Scripts::all().inspect;
    // A script that only reads may be asked for with rights to read only, from Redis 7.0 on.
    Command c;
    c.add("EVAL_RO").add(script.text()).add_number(6);
    keys.add_all_to(c, parts);
    auto reply = co_await ask(c, nullptr, deadline);
    if (!reply && (reply.error().why == errc::not_supported || reply.error().why == errc::denied)) {
        begin(c, script, 6);
        keys.add_all_to(c, parts);
        reply = co_await ask(c, &script, deadline);
    }
    if (!reply) co_return reply.error();
    if (reply->is_text())
        co_return spi::Failure(make(Error::wrong_type),
                               "a key of this name holds something other than a lock");
    if (!reply->is(Reply::Type::array) || reply->count < 5) co_return make(Error::protocol);
    const auto items = reply->items();
    const Told told{number(items[0].text), items[1].text, items[2].text, shared_->options.plain};
    const std::int64_t closed = number(items[3].text), holders = number(items[4].text);
    if (holders < 0 || static_cast<std::size_t>(holders) > items.size() - 5)
        co_return make(Error::protocol);
    spi::Survey out;
    out.last_token.value = State(told.state).token;
    if (closed >= 0) out.closed_for = spi::bounded_length<milliseconds>(closed);
    out.units = Content(told.value).units;
    const auto rows = items.subspan(5);
    const auto waiting = static_cast<std::size_t>(holders);
    for (const Reply& row : rows.first(waiting))
        out.holders.push_back(told.holder(row.text));
    for (const Reply& row : rows.subspan(waiting))
        out.waiters.push_back(waiter(row.text));
    co_return out;
}

awaitable<spi::Answer<std::vector<Reply>>> RedisBackend::values_of(
    const std::vector<std::string>& locks, boot_clock::time_point deadline) {
    if (!member_) {
        Command c;
        c.add("MGET");
        for (const std::string& lock : locks)
            c.add(lock);
        auto asking = ask(c, nullptr, deadline);
        auto values = co_await std::move(asking);
        if (!values) co_return values.error();
        if (!values->is(Reply::Type::array) || values->count != locks.size())
            co_return make(Error::protocol);
        values->elements.resize(locks.size());
        co_return std::move(values->elements);
    }
    // A command has one slot in a cluster. A name that has moved meanwhile is listed elsewhere.
    std::vector<Command> calls(locks.size());
    for (std::size_t i = 0; i < locks.size(); ++i)
        calls[i].add("GET").add(locks[i]);
    auto asking = ask(std::move(calls), deadline);
    auto values = co_await std::move(asking);
    co_return values;
}

awaitable<spi::Answer<std::vector<std::string>>> RedisBackend::list(
    std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) {
    const bool plain = shared_->options.plain;
    const std::string& ns = shared_->options.prefix;
    const std::string wanted = ns + std::string(prefix);
    const std::string pattern = plain ? literal_pattern(wanted) + "*" : "{*}:hf:s*";
    auto unusable = co_await still_usable(deadline);
    if (unusable) co_return unusable;
    std::vector<std::string> names;
    std::string cursor = "0";
    do {
        Command c;
        c.add("SCAN").add(cursor).add("MATCH").add(pattern).add("COUNT").add("1000");
        if (plain) c.add("TYPE").add("string");
        const auto page = co_await ask(c, nullptr, deadline);
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
        auto reading = values_of(locks, deadline);
        const auto values = co_await std::move(reading);
        if (!values) co_return values.error();
        for (std::size_t i = 0; i < locks.size(); ++i) {
            const Reply& value = (*values)[i];
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

awaitable<spi::Answer<spi::Survey>> RedisBackend::tell(std::string_view name,
                                                       const HolderFilter& which, spi::Tell tell,
                                                       boot_clock::time_point deadline) {
    const char what = tell == spi::Tell::asked ? '?' : tell == spi::Tell::revoked ? '0' : '1';
    const bool plain = shared_->options.plain;
    Keys keys;
    std::string parts;
    keys.assign(shared_->options.prefix, name);
    const std::string only = which.if_token ? std::to_string(which.if_token->value) : std::string();
    const Script& script = Scripts::all().tell_holders;
    spi::Survey out;
    // Of too many holders for one call: the holders, and how many of these have been named.
    std::vector<std::string> crowd;
    std::size_t named = 0;
    Command c;
    const auto call = [&](std::span<const std::string> owners) {
        begin(c, script, 6);
        keys.add_all_to(c, parts);
        c.add(only).add(std::string_view(&what, 1)).add(plain ? "1" : "0");
        for (const std::string& owner : owners)
            c.add(owner);
    };
    const std::string anybody = which.owner.value_or("");
    call({&anybody, 1});
    for (;;) {
        const auto reply = co_await ask(c, &script, deadline);
        if (!reply) co_return reply.error();
        if (!reply->is(Reply::Type::array) || reply->count < 1) co_return make(Error::protocol);
        const auto items = reply->items();
        const std::string& said = items[0].text;
        // Of a crowd some have left meanwhile.
        const bool gone = said == "n" || said == "t";
        if (!gone || crowd.empty())
            if (auto refused = not_told(said, tell)) co_return refused;
        if (!gone && items.size() < 5) co_return make(Error::protocol);
        if (said == "m" && !crowd.empty()) co_return make(Error::protocol);
        if (!gone) {
            const Told told{number(items[1].text), items[2].text, items[3].text, plain};
            for (const Reply& row : items.subspan(4)) {
                if (said == "d")
                    out.holders.push_back(told.holder(row.text));
                else
                    crowd.push_back(row.text);
            }
        }
        const auto now = std::span(crowd).subspan(named);
        named = std::min(named + most_told, crowd.size());
        call(now.first(std::min(most_told, now.size())));
        if (now.empty()) break;
    }
    if (out.holders.empty()) co_return make_error_code(errc::not_held);
    co_return out;
}

awaitable<spi::Answer<std::string>> RedisBackend::note(std::string_view name,
                                                       std::optional<std::string> text,
                                                       boot_clock::time_point deadline) {
    // In this mode there is no key but the lock's.
    if (shared_->options.plain) co_return make_error_code(errc::not_supported);
    const std::string key = record_key(shared_->options.prefix, name);
    Command c;
    if (text)
        c.add("SET").add(key).add(*text).add("EX").add(record_seconds);
    else
        c.add("GET").add(key);
    auto reply = co_await ask(c, nullptr, deadline);
    if (!reply) co_return reply.error();
    if (text) co_return std::move(*text);
    co_return reply->is_text() ? std::move(reply->text) : std::string();
}

}  // namespace holdfast::redis
