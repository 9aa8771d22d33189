#include "checks.hpp"

#include <set>
#include <span>

#include "../../resp/checks.hpp"
#include "holdfast/spi/common_checks.hpp"

namespace holdfast::redis {
namespace {

using Found = std::optional<spi::Judgement>;
using spi::Facts;

std::string counted(long long n, const std::string& one) {
    return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

Found judge_replica(const Facts& f) {
    const auto n = f.number("connected_slaves");
    if (!n) return spi::unknown("this user may not ask INFO");
    const std::string words = counted(*n, "replica");
    return *n == 0 ? spi::slow("it has no replica") : spi::sound("it has " + words);
}

Found judge_config(const Facts& f, std::string_view option, std::string_view wanted) {
    const std::string name(option);
    if (!f.has(option)) return spi::unknown(name + ": this user may not ask CONFIG GET");
    const std::string words = name + " is " + std::string(f.text(option));
    return f.text(option) == wanted ? spi::sound(words) : spi::slow(words);
}

Found judge_coverage(const Facts& f) {
    return judge_config(f, "cluster-require-full-coverage", "no");
}

Found judge_reads(const Facts& f) {
    return judge_config(f, "cluster-allow-reads-when-down", "no");
}

Found judge_timeout(const Facts& f) {
    const auto timeout = f.number("cluster-node-timeout"), ttl = f.number("ttl_ms");
    if (!timeout || !ttl)
        return spi::unknown("cluster-node-timeout: this user may not ask CONFIG GET");
    const std::string words = "cluster-node-timeout is " + std::to_string(*timeout) +
                              ", and the ttl " + spi::format_duration(milliseconds(*ttl));
    return *timeout > *ttl / 2 ? spi::slow(words) : spi::sound(words);
}

Found judge_moving(const Facts& f) {
    const auto n = f.number("moving");
    if (!n) return spi::unknown("this user may not ask CLUSTER NODES");
    if (*n == 0) return spi::sound();
    return spi::slow(counted(*n, "slot") + (*n == 1 ? " is" : " are") + " being moved");
}

Found judge_state(const Facts& f) {
    if (!f.has("cluster_state")) return spi::unknown("this user may not ask CLUSTER INFO");
    const std::string state = "cluster_state is " + std::string(f.text("cluster_state"));
    return f.text("cluster_state") == "ok" ? spi::sound(state) : spi::slow(state);
}

Found judge_clocks(const Facts& f) {
    const auto ahead = f.number("ahead_ms");
    if (!ahead) return {};
    const std::string words = "its clock is " + std::to_string(std::abs(*ahead)) + " ms " +
                              (*ahead < 0 ? "behind " : "ahead of ") +
                              std::string(f.text("first")) + "'s";
    return std::abs(*ahead) > 500 ? spi::unsafe(words) : spi::sound(words);
}

Found judge_slots(const Facts& f) {
    const auto n = f.number("uncovered");
    if (!n) return {};
    if (*n == 0) return spi::sound("each slot has a server");
    return spi::slow(counted(*n, "slot") + (*n == 1 ? " has" : " have") + " no server");
}

Found judge_count(const Facts& f) {
    const auto n = f.number("primaries");
    if (!n) return {};
    const std::string words =
        std::to_string(*n) + (*n == 1 ? " primary has" : " primaries have") + " slots";
    return *n < 3 ? spi::slow(words) : spi::sound(words);
}

Found judge_hosts(const Facts& f) {
    const auto shared = f.text("shared_host");
    if (shared.empty()) return spi::sound("each primary has a host of its own");
    return spi::slow("several primaries are on " + std::string(shared));
}

std::int64_t wall_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<milliseconds>(now).count();
}

/// The text that one command is answered; empty where it is refused.
asio::awaitable<std::string> text_of(Node& node, std::vector<std::string> words,
                                     boot_clock::time_point deadline) {
    Command c;
    for (const std::string& word : words)
        c.add(word);
    auto asking = node.backend->ask(c, nullptr, deadline);
    auto said = co_await std::move(asking);
    if (!said) co_return std::string();
    if (said->is_text()) co_return std::move(said->text);
    // CONFIG GET: names and values by turns.
    std::string lines;
    const auto items = said->items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
        lines += items[i].text + ":" + items[i + 1].text + "\n";
    co_return lines;
}

/// The primaries' clocks, beside that of the first one.
class Clocks {
public:
    void compare(const Node& node, Facts& facts) {
        const auto offset = node.backend->clock().server_ms(boot_clock::now()) - wall_ms();
        if (!first_) {
            first_ = offset;
            first_display_ = node.display;
        } else {
            facts.set("ahead_ms", offset - *first_);
            facts.set("first", first_display_);
        }
    }

private:
    std::optional<std::int64_t> first_;
    std::string first_display_;
};

}  // namespace

const std::vector<spi::Check>& node_checks() {
    static const std::vector<spi::Check> all{
        {"redis.answers", "the names in its slots cannot be locked until a replica takes over",
         "look at that server and its network", resp::judge::answers},
        {"redis.cluster_state", "it refuses every lock until a majority of the primaries is back",
         "CLUSTER INFO there, and its log", judge_state},
        {"redis.cluster_replica",
         "when it fails nobody takes its slots over, and their names cannot be locked",
         "redis-cli --cluster add-node ... --cluster-slave, or CLUSTER REPLICATE at a spare server",
         judge_replica},
        {"redis.full_coverage", "while one slot has no server no name at all can be locked",
         "CONFIG SET cluster-require-full-coverage no at each server, and in redis.conf",
         judge_coverage},
        {"redis.reads_when_down", "inspect and list may show what is not true any more",
         "CONFIG SET cluster-allow-reads-when-down no, and in redis.conf", judge_reads},
        {"redis.node_timeout", "the leases that are held are lost in each failover",
         "CONFIG SET cluster-node-timeout to less than half the ttl at each server, or a longer "
         "ttl",
         judge_timeout},
        {"redis.moving_slots",
         "no name in them can be acquired, renewed or released until they have arrived",
         "let the resharding end; redis-cli --cluster fix if it has broken off", judge_moving},
        {"redis.cluster_clock",
         "after a slot has moved between the two, readers and permits may end too early, and "
         "tokens "
         "may go back",
         "synchronise the clocks of all servers (chronyc tracking)", judge_clocks},
    };
    return all;
}
[[maybe_unused]] const auto& node_checks_at_load = node_checks();

const std::vector<spi::Check>& cluster_checks() {
    static const std::vector<spi::Check> all{
        {"redis.slots", "names in them cannot be locked",
         "bring their server back, or redis-cli --cluster fix", judge_slots},
        {"redis.primaries", "no majority is left to replace one that fails",
         "spread the slots over three primaries or more", judge_count},
        {"redis.cluster_hosts", "one machine's failure takes several primaries",
         "give each primary a machine of its own", judge_hosts},
    };
    return all;
}
[[maybe_unused]] const auto& cluster_checks_at_load = cluster_checks();

asio::awaitable<spi::Failure> examine_cluster(const std::vector<Node*>& primaries,
                                              const Members& members, const spi::Settings& settings,
                                              boot_clock::time_point deadline,
                                              std::vector<Finding>& into) {
    Facts set;
    set.where = settings.display();
    std::set<std::string> hosts;
    Clocks clocks;
    spi::Failure unreachable(make(Error::uncovered));
    bool answered = false;
    auto left = static_cast<std::int64_t>(primaries.size()) + 1;
    for (Node* node : primaries) {
        spi::note_host(set, hosts, node->endpoint.host);
        Facts facts;
        facts.where = node->display;
        // One that hangs leaves time for the others.
        const auto now = boot_clock::now();
        auto examining = node->backend->examine(now + (deadline - now) / left--);
        auto one = co_await std::move(examining);
        if (!one) {
            unreachable = std::move(one).error();
            facts.set("silent", unreachable.text());
            // Of one that is silent, nothing else is known.
            spi::judge(std::span(node_checks()).first(1), facts, into);
            continue;
        }
        answered = true;
        into.insert(into.end(), one->findings.begin(), one->findings.end());
        facts.set("ttl_ms", settings.duration("ttl").count());
        const std::vector<std::vector<std::string>> questions{
            {"CLUSTER", "INFO"}, {"INFO", "replication"}, {"CONFIG", "GET", "cluster-*"}};
        for (const auto& question : questions) {
            auto asking = text_of(*node, question, deadline);
            const std::string text = co_await std::move(asking);
            spi::note_lines(facts, text, ":");
        }
        auto asking = text_of(*node, {"CLUSTER", "NODES"}, deadline);
        const std::string nodes = co_await std::move(asking);
        if (!nodes.empty()) facts.set("moving", static_cast<long long>(moving_slots_of(nodes)));
        if (settings.text("mode") != "plain") clocks.compare(*node, facts);
        spi::judge(node_checks(), facts, into);
    }
    if (!answered) co_return unreachable;
    long long uncovered = 0;
    for (std::size_t s = 0; s < slot_count; ++s)
        if (members.of(static_cast<Slot>(s)) == nullptr) ++uncovered;
    set.set("uncovered", uncovered);
    set.set("primaries", static_cast<long long>(primaries.size()));
    spi::judge(cluster_checks(), set, into);
    co_return spi::Failure();
}

}  // namespace holdfast::redis
