// What these nodes are, and what follows for their locks: `holdfast doctor`, probe and `require`.
#include <algorithm>
#include <set>
#include <span>

#include "../resp/checks.hpp"
#include "backend.hpp"
#include "errors.hpp"
#include "holdfast/spi/common_checks.hpp"

namespace holdfast::redlock {
namespace {

/// A node that may lose its data sits out after a restart, unless the configuration says that it
/// keeps them.
template <auto judgement>
std::optional<spi::Judgement> if_durable(const spi::Facts& f) {
    if (f.text("durable") != "1") return {};
    return judgement(f);
}

const std::vector<spi::Check>& node_checks() {
    constexpr std::string_view lossy =
        "the configuration says durable=yes, but a crash of this server may lose writes, and it "
        "votes at once when it is back";
    constexpr std::string_view keep =
        "appendonly yes, appendfsync always, no-appendfsync-on-rewrite no; or leave durable=yes "
        "out";
    static const auto all = resp::with_node_checks({
        {"redlock.answers", "one failure less is tolerated", "look at that server and its network",
         resp::judge::answers},
        {"redlock.role", "it accepts no locks", "name the primary in the URL", resp::judge::role},
        {"redlock.replicas", "a failover to one of them counts as a restart without data",
         "switch automatic failover off", resp::judge::replicas},
        {"redlock.persistence", lossy, keep, if_durable<resp::judge::persistence>},
        {"redlock.append_only_file", lossy, keep, if_durable<resp::judge::append_only_file>},
        {"redlock.fsync", lossy, keep, if_durable<resp::judge::fsync>},
        {"redlock.fsync_on_rewrite", lossy, keep, if_durable<resp::judge::fsync_on_rewrite>},
    });
    return all;
}
[[maybe_unused]] const auto& node_checks_at_load = node_checks();

std::optional<spi::Judgement> judge_skew(const spi::Facts& f) {
    const auto skew = f.number("skew_ms");
    if (!skew) return {};
    const std::string words = "the nodes' clocks differ by " + std::to_string(*skew) + " ms";
    return *skew > 1000 ? spi::unsafe(words) : spi::sound(words);
}

std::optional<spi::Judgement> judge_hosts(const spi::Facts& f) {
    const auto shared = f.text("shared_host");
    if (!f.has("shared_host")) return {};
    if (shared.empty()) return spi::sound("each node has a host of its own");
    return spi::slow("several nodes are on " + std::string(shared));
}

std::optional<spi::Judgement> judge_count(const spi::Facts& f) {
    const auto n = f.number("nodes").value_or(0);
    const std::string words = std::to_string(n) + " nodes";
    return n % 2 == 0 ? spi::slow(words) : spi::sound(words);
}

std::optional<spi::Judgement> judge_fencing(const spi::Facts& f) {
    return f.text("fencing") == "1" ? spi::sound()
                                    : spi::unsafe("fencing=off: leases have no token");
}

constexpr spi::Check set_checks[] = {
    {"redlock.skew", spi::clock_consequence, spi::clock_remedy, judge_skew},
    {"redlock.hosts", "one machine's failure takes several votes",
     "give each node a machine of its own", judge_hosts},
    {"redlock.nodes", "an even number tolerates no more failures than one node less",
     "add a node, or remove one", judge_count},
    {"redlock.fencing", "a store cannot refuse the late write of a paused holder",
     "leave fencing=off out", judge_fencing},
};

}  // namespace

std::vector<spi::Check> all_checks() {
    auto all = node_checks();
    all.insert(all.end(), std::begin(set_checks), std::end(set_checks));
    return all;
}

awaitable<spi::Answer<Examination>> RedlockBackend::examine(boot_clock::time_point deadline) {
    const std::size_t count = set_->size();
    std::vector<spi::Facts> facts(count);
    std::size_t question = 0;
    spi::Failure few;
    Keys keys;
    keys.assign(set_->options.prefix, resp::unused_name());
    resp::Touched touched{std::move(keys.lock), {}, {}};
    if (set_->options.fencing) touched.sibling = std::move(keys.readers);
    for (const auto& words : resp::questions(touched)) {
        std::vector<std::vector<std::string>> commands(count, words);
        const auto before = std::chrono::system_clock::now();
        const auto sent = boot_clock::now();
        auto task = ask_all(std::move(commands), nullptr, deadline);
        const auto said = co_await std::move(task);
        const auto took = boot_clock::now() - sent;
        const auto after = std::chrono::system_clock::now();
        // The first question connects as well.
        if (question == 0) few = no_quorum(said);
        for (std::size_t i = 0; i < count; ++i) {
            resp::note_answer(facts[i], question, said[i].reply.get());
            if (question == 0 && (said[i].why || !said[i].reply->is_text()))
                facts[i].set("silent", set_->nodes[i]->words(boot_clock::now()));
            if (!facts[i].has("time_us") || facts[i].has("round_trip_us")) continue;
            resp::note_times(facts[i], before, after);
            spi::note_round_trip(facts[i], took, set_->options.ttl);
        }
        if (few) co_return few;
        ++question;
    }
    Examination found;
    spi::Facts set;
    std::set<std::string> hosts;
    std::optional<long long> least, most;
    std::size_t durable = 0;
    set.set("shared_host", "");
    for (std::size_t i = 0; i < count; ++i) {
        facts[i].where = set_->nodes[i]->where;
        facts[i].set("durable", set_->options.durable ? 1 : 0);
        const std::string& host = set_->nodes[i]->server->target.host;
        if (!hosts.insert(host).second) set.set("shared_host", host);
        if (const auto offset = facts[i].number("clock_offset_ms")) {
            least = std::min(least.value_or(*offset), *offset);
            most = std::max(most.value_or(*offset), *offset);
        }
        if (resp::keeps_each_write(facts[i])) ++durable;
        // Of one that is silent, nothing else is known.
        const std::span<const spi::Check> all(node_checks());
        spi::judge(facts[i].has("silent") ? all.first(1) : all, facts[i], found.findings);
    }
    if (least) set.set("skew_ms", *most - *least);
    set.set("nodes", static_cast<long long>(count));
    set.set("fencing", set_->options.fencing ? 1 : 0);
    spi::judge(set_checks, set, found.findings);
    found.capabilities = capabilities_;
    found.capabilities.set(Capability::survives_server_crash,
                           set_->options.fencing && durable == count);
    co_return found;
}

}  // namespace holdfast::redlock
