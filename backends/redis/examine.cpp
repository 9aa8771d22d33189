// What this server is, and what follows for its locks: `holdfast doctor`, probe and `require`.
#include "../resp/checks.hpp"
#include "../resp/errors.hpp"
#include "../resp/server_facts.hpp"
#include "backend.hpp"
#include "cluster/checks.hpp"
#include "holdfast/spi/common_checks.hpp"
#include "sentinel/checks.hpp"

namespace holdfast::redis {
namespace {

/// Those of a single server, the ones that decide its class first.
const std::vector<spi::Check>& server_checks() {
    static const auto all = with_node_checks({
        {"redis.info", "what the server keeps is unknown, so count on nothing",
         "ACL SETUSER the user +info +time +config|get", judge::answered},
        {"redis.role", "it takes no locks", "name the primary in the URL", judge::role},
        {"redis.persistence",
         "a crash loses every grant since its last snapshot, and a second client acquires the lock",
         "CONFIG SET appendonly yes and appendfsync always, and the same in redis.conf",
         judge::persistence},
        {"redis.append_only_file", "a crash may lose grants",
         "look at the server's log and its disk; BGREWRITEAOF", judge::append_only_file},
        {"redis.fsync",
         "a crash loses the grants of the last moments, and a second client acquires the lock",
         "CONFIG SET appendfsync always, and the same in redis.conf", judge::fsync},
        {"redis.fsync_on_rewrite", "while it saves, nothing is synced, and a crash may lose grants",
         "CONFIG SET no-appendfsync-on-rewrite no, and the same in redis.conf",
         judge::fsync_on_rewrite},
        {"redis.replicas", "after a switch to a replica a lock can be held twice",
         "keep locks on a server without replicas, or check the token at the store",
         judge::replicas},
    });
    return all;
}
[[maybe_unused]] const auto& server_checks_at_load = server_checks();

/// In a cluster there are replicas.
const std::vector<spi::Check>& member_checks() {
    static const auto all = [] {
        auto checks = server_checks();
        std::erase_if(checks, [](const spi::Check& c) { return c.id == "redis.replicas"; });
        return checks;
    }();
    return all;
}
[[maybe_unused]] const auto& member_checks_at_load = member_checks();

/// Under Sentinels, too, and with `redis.split` sound they are what is wanted.
const std::vector<spi::Check>& primary_checks() {
    static const auto all = [] {
        auto checks = member_checks();
        checks.insert(checks.end(), split_checks().begin(), split_checks().end());
        return checks;
    }();
    return all;
}
[[maybe_unused]] const auto& primary_checks_at_load = primary_checks();

Examination of_a_replica(const std::string& where, const Capabilities& promised) {
    // The only thing that matters is known.
    spi::Facts facts;
    facts.set("role", "slave");
    std::vector<spi::Check> checks = server_checks();
    std::erase_if(checks,
                  [](const spi::Check& c) { return std::string_view(c.id) != "redis.role"; });
    Examination found;
    facts.where = where;
    spi::judge(checks, facts, found.findings);
    found.capabilities = promised;
    return found;
}

}  // namespace

std::vector<spi::Check> all_checks() {
    return server_checks();
}

std::vector<spi::Check> all_sentinel_checks() {
    auto all = primary_checks();
    for (const auto* more : {&sentinel_checks(), &replica_checks(), &set_checks()})
        all.insert(all.end(), more->begin(), more->end());
    return all;
}

std::vector<spi::Check> all_cluster_checks() {
    auto all = member_checks();
    for (const auto* more : {&node_checks(), &cluster_checks()})
        all.insert(all.end(), more->begin(), more->end());
    return all;
}

bool RedisBackend::assign_unused(Keys& keys) const {
    bool has_slots = member_ == nullptr;
    for (std::size_t slot = 0; slot < slot_count && !has_slots; ++slot)
        has_slots = member_->has(static_cast<Slot>(slot));
    if (!has_slots) return false;
    const auto slot_with = [&](std::string_view name) {
        keys.assign(shared_->options.prefix, name);
        return slot_of(keys.lock);
    };
    // With a tag in the prefix all names have one slot, and another server may have that.
    const bool one_slot = slot_with("a") == slot_with("b");
    Slot slot = slot_with(unused_name());
    while (member_ && !one_slot && !member_->has(slot))
        slot = slot_with(unused_name());
    if (member_ && !member_->has(slot)) keys = Keys();
    return true;
}

awaitable<spi::Answer<Examination>> RedisBackend::examine(boot_clock::time_point deadline) {
    const auto unreachable = co_await connection_->ready(deadline);
    if (unreachable.why == make(Error::read_only))
        co_return of_a_replica(shared_->target.display, capabilities_);
    if (unreachable) co_return unreachable;
    Keys keys;
    if (!assign_unused(keys))
        co_return spi::Failure(make(Error::moving),
                               shared_->target.display + ": its slots have gone to other servers");
    Touched touched{std::move(keys.lock), {}, {}};
    if (!shared_->options.plain) touched.sibling = std::move(keys.queue);
    if (shared_->options.queue && !shared_->options.plain) touched.channel = "hf:c:doctor";
    const auto asked = questions(touched);
    std::vector<Request> calls(asked.size());
    for (std::size_t i = 0; i < calls.size(); ++i)
        for (const std::string& word : asked[i])
            calls[i].command.add(word);
    const auto before = std::chrono::system_clock::now();
    const auto sent = boot_clock::now();
    auto asking = run(calls, deadline);
    const Answer answer = co_await std::move(asking);
    if (answer.failed) co_return answer.failed;
    spi::Facts facts;
    spi::note_round_trip(facts, boot_clock::now() - sent, shared_->options.ttl);
    for (std::size_t i = 0; i < calls.size(); ++i)
        note_answer(facts, i, &answer.replies[i]);
    note_times(facts, before, std::chrono::system_clock::now());
    // Without the right to ask, nothing is known, and the lowest class it is.
    if (const Reply& info = answer.replies.front();
        info.is(Reply::Type::error) && !info.text.starts_with("NOPERM")) {
        notice(from_reply(info.text));
        co_return spi::Failure(from_reply(info.text), std::string(shown(info.text)));
    }
    if (!member_ && facts.text("cluster_enabled") == "1")
        co_return spi::Failure(make(Error::cluster), "write redis+cluster://HOST,HOST,HOST");
    if (const auto version = facts.text("redis_version"); !version.empty() && too_old(version))
        co_return spi::Failure(make(Error::too_old), "the server is Redis " + std::string(version));
    Examination found;
    facts.where = shared_->target.display;
    spi::judge(sentinels_ ? primary_checks()
               : member_  ? member_checks()
                          : server_checks(),
               facts, found.findings);
    found.capabilities = capabilities_;
    const bool durable = keeps_each_write(facts);
    found.capabilities.set(Capability::survives_server_crash,
                           durable && !shared_->options.plain && !sentinels_ && !member_);
    if (sentinels_) {
        auto looking = examine_set(context_.engine, *shared_, *sentinels_, tls_.get(), facts,
                                   deadline, found.findings);
        co_await std::move(looking);
        co_return found;
    }
    if (durable && !member_ &&
        spi::all_sound(found.findings, {"redis.role", "redis.replicas", "redis.eviction"}))
        found.capabilities.safety = SafetyClass::b;
    co_return found;
}

}  // namespace holdfast::redis
