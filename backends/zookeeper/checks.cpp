// What is made of the servers' own words: pure functions.
#include "checks.hpp"

#include <set>
#include <string>

#include "holdfast/spi/common_checks.hpp"
#include "options.hpp"

namespace holdfast::zookeeper {
namespace {

using Found = std::optional<spi::Judgement>;

Found judge_answers(const spi::Facts& f) {
    if (f.has("Zookeeper version")) return spi::sound("it is a " + std::string(f.text("Mode")));
    if (f.text("srvr").empty()) return spi::slow("it does not answer");
    if (f.text("srvr").find("not currently serving") != std::string_view::npos)
        return spi::slow("it serves no requests: it has no leader");
    return spi::unknown("it may not be asked (srvr is not in its 4lw.commands.whitelist)");
}

Found judge_latency(const spi::Facts& f) {
    const auto text = f.text("Latency min/avg/max");
    const auto slash = text.find('/');
    if (slash == text.npos) return {};
    spi::Facts average;
    average.set("ms", std::string(text.substr(slash + 1)));
    const auto ms = average.number("ms"), received = f.number("Received");
    if (!ms) return {};
    // Its first requests wait for the JVM to warm up.
    if (received.value_or(0) < 100) return spi::sound("too few requests to say");
    const std::string words = "its requests take " + std::to_string(*ms) + " ms on average";
    return *ms > 50 ? spi::slow(words) : spi::sound(words);
}

Found without_conf(const spi::Facts& f) {
    if (f.text("srvr").empty()) return Found();
    return spi::unknown("it may not be asked (conf is not in its 4lw.commands.whitelist)");
}

Found judge_tick(const spi::Facts& f) {
    const auto theirs = f.number("tickTime"), ours = f.number("tick_ms");
    if (!theirs || !ours) return without_conf(f);
    const std::string words = "its tickTime is " + spi::format_duration(milliseconds(*theirs)) +
                              ", and tick_time is " + spi::format_duration(milliseconds(*ours));
    return *theirs > *ours ? spi::unsafe(words) : spi::sound(words);
}

Found judge_longest_session(const spi::Facts& f) {
    const auto most = f.number("maxSessionTimeout"), ttl = f.number("ttl_ms");
    if (!most || !ttl) return {};
    const std::string words =
        "its maxSessionTimeout is " + spi::format_duration(milliseconds(*most));
    return *most < *ttl ? spi::slow(words) : spi::sound(words);
}

Found judge_shortest_session(const spi::Facts& f) {
    const auto least = f.number("minSessionTimeout"), ttl = f.number("ttl_ms");
    if (!least || !ttl) return {};
    const std::string words =
        "its minSessionTimeout is " + spi::format_duration(milliseconds(*least));
    return *least > *ttl ? spi::slow(words) : spi::sound(words);
}

Found judge_connections(const spi::Facts& f) {
    const auto most = f.number("maxClientCnxns");
    if (!most) return {};
    const std::string words = "its maxClientCnxns is " + std::to_string(*most);
    return *most > 0 && *most < 10 ? spi::slow(words) : spi::sound(words);
}

constexpr spi::Check server_checks[] = {
    {"zookeeper.answers", "one failure less is tolerated, or it is unknown",
     "look at that server; add srvr and conf to 4lw.commands.whitelist", judge_answers},
    {"zookeeper.tick_time", "exclusion depends on it: a lease can be believed too long",
     "set tick_time to their tickTime, or more", judge_tick},
    {"zookeeper.longest_session", "leases are shorter than asked for",
     "raise maxSessionTimeout, or lower the ttl", judge_longest_session},
    {"zookeeper.shortest_session", "a crashed holder blocks the others for longer than the ttl",
     "lower minSessionTimeout, or raise the ttl", judge_shortest_session},
    {"zookeeper.connections", "a machine with more clients, one for each ttl, is refused",
     "raise maxClientCnxns; 60 is the default", judge_connections},
    {"zookeeper.latency", "each acquisition and each release waits for it",
     "a disk of its own for dataLogDir; look at the servers' processors and heaps", judge_latency},
};

Found judge_servers(const spi::Facts& f) {
    const auto voters = f.number("voters");
    if (!voters) return spi::unknown("/zookeeper/config cannot be read");
    const std::string words =
        std::to_string(*voters) + (*voters == 1 ? " voting server" : " voting servers");
    return *voters % 2 == 0 || *voters == 1 ? spi::slow(words) : spi::sound(words);
}

Found judge_hosts(const spi::Facts& f) {
    const auto shared = f.text("shared_host");
    return shared.empty() ? spi::sound()
                          : spi::slow("several servers are on " + std::string(shared));
}

Found judge_observers(const spi::Facts& f) {
    const auto n = f.number("observers").value_or(0);
    return n == 0 ? spi::sound()
                  : spi::unknown(std::to_string(n) +
                                 " observers: whether one follows another (observerMasterPort) "
                                 "cannot be asked");
}

Found judge_listed(const spi::Facts& f) {
    const auto voters = f.number("voters"), listed = f.number("listed");
    if (!voters || !listed || *voters == 1) return {};
    const std::string words =
        "the URL names " + std::to_string(*listed) + " of " + std::to_string(*voters) + " servers";
    return *listed < *voters ? spi::slow(words) : spi::sound(words);
}

constexpr spi::Check ensemble_checks[] = {
    {"zookeeper.rights", spi::rights_consequence,
     "give this user create and read in the base, and every right below it", spi::judge_rights},
    {"zookeeper.servers", "the failure of one stops every lock, as with one server less",
     "run three or five", judge_servers},
    {"zookeeper.listed", "when those fail, the others are not asked", "name all servers in the URL",
     judge_listed},
    {"zookeeper.hosts", "one machine's failure takes several votes",
     "give each server a machine of its own", judge_hosts},
    {"zookeeper.observers",
     "behind an observer master a session can end while its client believes in it",
     "do not set observerMasterPort", judge_observers},
    {"zookeeper.round_trip", spi::round_trip_consequence, spi::round_trip_remedy,
     spi::judge_round_trip},
};

}  // namespace

std::span<const spi::Check> checks_of_servers() {
    return server_checks;
}
std::span<const spi::Check> checks_of_ensembles() {
    return ensemble_checks;
}

void note_config(spi::Facts& facts, std::string_view text) {
    long long voters = 0, observers = 0;
    std::set<std::string> hosts;
    spi::Facts lines;
    spi::note_lines(lines, text, "=");
    for (const auto& [key, value] : lines.values) {
        if (!key.starts_with("server.")) continue;
        if (value.find(":observer") != value.npos) ++observers;
        if (value.find(":participant") == value.npos) continue;
        ++voters;
        const auto end = value.starts_with('[') ? value.find(']') + 1 : value.find(':');
        spi::note_host(facts, hosts, value.substr(0, end));
    }
    facts.set("voters", std::max(voters, 1LL));
    facts.set("observers", observers);
}

std::vector<spi::Check> all_checks() {
    std::vector<spi::Check> all(std::begin(server_checks), std::end(server_checks));
    all.insert(all.end(), std::begin(ensemble_checks), std::end(ensemble_checks));
    return all;
}

}  // namespace holdfast::zookeeper
