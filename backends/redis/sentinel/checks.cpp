#include "checks.hpp"

#include <algorithm>
#include <set>

#include "../../resp/errors.hpp"
#include "../../resp/majority.hpp"
#include "holdfast/spi/common_checks.hpp"

namespace holdfast::redis {
namespace {

using Found = std::optional<spi::Judgement>;
using spi::Facts;

/// Of min-replicas-max-lag, in seconds: the server's default.
constexpr std::int64_t usual_lag = 10;

Found judge_split(const Facts& f) {
    const auto least = f.number("min-replicas-to-write");
    if (!least) return spi::unknown("min-replicas-to-write: this user may not ask CONFIG GET");
    const std::string words = "min-replicas-to-write is " + std::to_string(*least);
    if (*least == 0) return spi::unsafe(words);
    // 0 switches it off as well; for so long one that is cut off goes on.
    const auto lag = f.number("min-replicas-max-lag").value_or(usual_lag);
    const auto most = std::max<std::int64_t>(usual_lag, f.number("ttl_ms").value_or(0) / 1000);
    if (lag > 0 && lag <= most) return spi::sound(words);
    return spi::unsafe(words + ", but min-replicas-max-lag " + std::to_string(lag));
}

Found judge_sentinel(const Facts& f) {
    if (f.has("silent")) return spi::slow(std::string(f.text("silent")));
    return spi::sound();
}

Found judge_listed(const Facts& f) {
    const auto others = f.number("num-other-sentinels"), listed = f.number("listed");
    if (!others || !listed) return {};
    const std::string words = "it knows of " + std::to_string(*others + 1) +
                              " Sentinels, and the URL lists " + std::to_string(*listed);
    return *others + 1 != *listed ? spi::unsafe(words) : spi::sound(words);
}

Found judge_quorum(const Facts& f) {
    const auto quorum = f.number("quorum"), listed = f.number("listed");
    if (!quorum || !listed) return {};
    const std::string words = "its quorum is " + std::to_string(*quorum);
    const auto majority = resp::majority(static_cast<std::size_t>(*listed));
    return *quorum > static_cast<std::int64_t>(majority) ? spi::slow(words) : spi::sound(words);
}

Found judge_down_after(const Facts& f) {
    const auto down = f.number("down-after-milliseconds"), ttl = f.number("ttl_ms");
    if (!down || !ttl) return {};
    const std::string words = "down-after-milliseconds is " + std::to_string(*down) +
                              ", and the ttl " + spi::format_duration(milliseconds(*ttl));
    return *down > *ttl / 2 ? spi::slow(words) : spi::sound(words);
}

Found judge_announced(const Facts& f) {
    if (f.has("unreachable")) return spi::slow(std::string(f.text("unreachable")));
    return spi::sound();
}

Found judge_replica_clock(const Facts& f) {
    const auto ahead = f.number("ahead_ms");
    if (!ahead) return {};
    const std::string words = "its clock is " + std::to_string(std::abs(*ahead)) + " ms " +
                              (*ahead < 0 ? "behind" : "ahead of") + " the primary's";
    return std::abs(*ahead) > 500 ? spi::unsafe(words) : spi::sound(words);
}

Found judge_count(const Facts& f) {
    const auto n = f.number("listed").value_or(0);
    const std::string words = std::to_string(n) + (n == 1 ? " Sentinel" : " Sentinels");
    return n < 3 || n % 2 == 0 ? spi::slow(words) : spi::sound(words);
}

Found judge_hosts(const Facts& f) {
    const auto shared = f.text("shared_host");
    if (shared.empty()) return spi::sound("each Sentinel has a host of its own");
    return spi::slow("several Sentinels are on " + std::string(shared));
}

std::int64_t wall_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<milliseconds>(now).count();
}

/// "ip=10.0.0.2,port=6379,state=online,...", as INFO has it of each replica.
std::optional<spi::Endpoint> replica_of(std::string_view text) {
    const auto value = [&](std::string_view key) {
        const auto at = text.find(key);
        if (at == text.npos) return std::string_view();
        const auto rest = text.substr(at + key.size());
        return rest.substr(0, rest.find(','));
    };
    const auto port = number(value("port="));
    if (value("ip=").empty() || port <= 0 || port > 65535) return std::nullopt;
    return spi::Endpoint{std::string(value("ip=")), static_cast<std::uint16_t>(port)};
}

asio::awaitable<Facts> examine_replica(asio::any_io_executor executor, const Target& data,
                                       spi::Endpoint where, tls::Context* tls,
                                       std::optional<long long> primary_offset,
                                       boot_clock::time_point deadline) {
    Target t = data;
    t.host = where.host;
    t.port = where.port;
    t.display = "replica " + spi::text_of(where);
    t.asks_time = true;
    Facts facts;
    facts.where = t.display;
    const auto server = std::make_shared<Server>(std::move(t));
    const auto link = std::make_shared<Link>(executor, server, tls);
    const auto soon = std::min(deadline, boot_clock::now() + milliseconds(1000));
    auto opening = link->open(soon);
    const spi::Failure failed = co_await std::move(opening);
    link->close();
    if (failed) {
        facts.set("unreachable", failed.text());
    } else if (primary_offset) {
        const auto offset = server->clock.server_ms(boot_clock::now()) - wall_ms();
        facts.set("ahead_ms", offset - *primary_offset);
    }
    co_return facts;
}

}  // namespace

const std::vector<spi::Check>& split_checks() {
    static const std::vector<spi::Check> all{
        {"redis.split",
         "a primary that a partition cuts off from its replicas goes on granting, beside the one "
         "that is chosen in its place",
         "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10 at each server, and in "
         "redis.conf",
         judge_split},
    };
    return all;
}
[[maybe_unused]] const auto& split_checks_at_load = split_checks();

const std::vector<spi::Check>& sentinel_checks() {
    static const std::vector<spi::Check> all{
        {"redis.sentinel",
         "one failure less is tolerated, and a majority of the Sentinels is needed",
         "look at that Sentinel and its network", judge_sentinel},
        {"redis.listed",
         "a majority of the listed ones is not one of all, so a cut-off client may hold for longer "
         "than its ttl",
         "list every Sentinel in the URL; SENTINEL RESET at each where one was removed",
         judge_listed},
        {"redis.quorum", "a minority that fails stops every failover",
         "SENTINEL SET the name quorum to a majority", judge_quorum},
        {"redis.down_after", "the leases that are held are lost in each failover",
         "SENTINEL SET the name down-after-milliseconds to less than half the ttl, or a longer ttl",
         judge_down_after},
    };
    return all;
}
[[maybe_unused]] const auto& sentinel_checks_at_load = sentinel_checks();

const std::vector<spi::Check>& replica_checks() {
    static const std::vector<spi::Check> all{
        {"redis.announced", "after a switch to it no lock can be acquired",
         "replica-announce-ip and replica-announce-port, as this client reaches it",
         judge_announced},
        {"redis.replica_clock",
         "after a switch to it leases end earlier by as much, or tokens may go back",
         "synchronise the clocks of all servers (chronyc tracking)", judge_replica_clock},
    };
    return all;
}
[[maybe_unused]] const auto& replica_checks_at_load = replica_checks();

const std::vector<spi::Check>& set_checks() {
    static const std::vector<spi::Check> all{
        {"redis.sentinels", "fewer than three tolerate no failure, and an even number none more",
         "run three or five Sentinels", judge_count},
        {"redis.sentinel_hosts", "one machine's failure takes several votes",
         "give each Sentinel a machine of its own", judge_hosts},
    };
    return all;
}
[[maybe_unused]] const auto& set_checks_at_load = set_checks();

asio::awaitable<void> examine_set(asio::any_io_executor executor, const Shared& shared,
                                  Sentinels& sentinels, tls::Context* tls, const Facts& primary,
                                  boot_clock::time_point deadline, std::vector<Finding>& into) {
    auto asking = sentinels.ask_until(deadline, [] { return false; });
    co_await std::move(asking);
    Facts set;
    std::set<std::string> hosts;
    set.set("listed", static_cast<long long>(sentinels.all().size()));
    for (const auto& one : sentinels.all()) {
        Facts facts;
        facts.where = one->target().display;
        facts.values = one->facts();
        facts.set("listed", static_cast<long long>(sentinels.all().size()));
        facts.set("ttl_ms", shared.options.ttl.count());
        if (one->failed()) facts.set("silent", one->failed().text());
        spi::judge(sentinel_checks(), facts, into);
        spi::note_host(set, hosts, one->target().host);
    }
    set.where = shared.target.display;
    spi::judge(set_checks(), set, into);
    for (int i = 0;; ++i) {
        const std::string key = "slave" + std::to_string(i);
        if (!primary.has(key)) break;
        const auto where = replica_of(primary.text(key));
        if (!where) continue;
        auto looking = examine_replica(executor, shared.target, *where, tls,
                                       primary.number("clock_offset_ms"), deadline);
        const Facts facts = co_await std::move(looking);
        spi::judge(replica_checks(), facts, into);
    }
}

}  // namespace holdfast::redis
