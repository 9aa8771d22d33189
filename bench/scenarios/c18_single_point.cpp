// C18: a lock at one server lives and dies with it. The server hangs, crashes and comes back, or
// comes back too late, while the lock is held and another client waits.
#include <thread>

#include "faults/holder.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C18";

enum class Fault : std::uint8_t { hang, restart, late };
constexpr std::pair<Fault, const char*> faults[] = {{Fault::hang, "hung"},
                                                    {Fault::restart, "crashed, back at once"},
                                                    {Fault::late, "crashed, back late"}};

/// One server of its own for each set-up, with what may be done to it.
struct Server {
    Deployment deployment;
    bool keeps = true;  ///< what it granted survives a crash
    std::shared_ptr<void> server;
    std::function<void()> pause, resume, kill, restart;
};

template <class S>
Server wrap(Deployment deployment, bool keeps, S started, std::function<void(S&)> restart) {
    auto server = std::make_shared<S>(std::move(started));
    return {std::move(deployment),
            keeps,
            server,
            [server] { server->pause(); },
            [server] { server->resume(); },
            [server] { server->kill(); },
            [server, restart] { restart(*server); }};
}

Server redis(const char* variant, bool keeps) {
    lab::RedisOptions options;
    options.append_only = keeps;
    auto server = lab::RedisServer::start(options);
    Deployment d{"redis", variant, server.url(), {}, {}, {}};
    return wrap<lab::RedisServer>(std::move(d), keeps, std::move(server),
                                  [](auto& s) { s.restart(lab::Data::keep); });
}

Server postgresql() {
    lab::PostgresOptions options;
    options.fsync = true;
    auto server = lab::PostgresServer::start(options);
    Deployment d{"postgresql", "default", server.url(), {}, {}, {}};
    return wrap<lab::PostgresServer>(std::move(d), true, std::move(server),
                                     [](auto& s) { s.restart(lab::Data::keep); });
}

Server mysql() {
    lab::MariadbOptions options;
    options.fsync = true;
    auto server = lab::MariadbServer::start(options);
    Deployment d{"mysql", "default", server.url(), {}, {}, {}};
    return wrap<lab::MariadbServer>(std::move(d), true, std::move(server),
                                    [](auto& s) { s.restart(lab::Data::keep); });
}

Server zookeeper() {
    auto server = lab::ZooKeeperServers::start();
    Deployment d{"zookeeper", "default", server.url() + "?tick_time=100ms", {}, {}, {}};
    auto all = std::make_shared<lab::ZooKeeperServers>(std::move(server));
    return {std::move(d),
            true,
            all,
            [all] { all->pause(); },
            [all] { all->resume(); },
            [all] { all->kill(); },
            [all] { all->restart_all(); }};
}

Server etcd() {
    auto server = lab::EtcdServers::start(short_elections());
    Deployment d{"etcd", "default", server.url(), {}, {}, {}};
    return wrap<lab::EtcdServers>(std::move(d), true, std::move(server),
                                  [](auto& s) { s.restart_all(); });
}

SetUp of(const Server& server, Fault fault, const char* words, int ttl_ms) {
    const Deployment& d = server.deployment;
    // A server that forgets gives the lock twice when it is back before the ttl is over.
    return {id, d.backend, (d.variant == "default" ? "" : d.variant + ", ") + words,
            server.keeps || fault != Fault::restart, "ttl " + std::to_string(ttl_ms) + " ms"};
}

Fate play(const Bench& bench, const Server& server, const SetUp& set_up, Fault fault, int number,
          int ttl_ms, Tally& tally) {
    const auto cap = milliseconds(6 * ttl_ms) + std::chrono::seconds(30);
    const auto long_cap = std::chrono::duration_cast<milliseconds>(cap);
    const std::string name = "bench/single/" + std::to_string(number);
    const Deployment& d = server.deployment;
    Holder first(bench, d, name, {.ttl = milliseconds(ttl_ms)}, history_of(bench, set_up, d, "A"));
    Holder second(bench, d, name, {.ttl = milliseconds(ttl_ms)}, history_of(bench, set_up, d, "B"));
    line_up(first, second, long_cap);

    Fate seen;
    (fault == Fault::hang ? server.pause : server.kill)();
    const double at = boot_ms();
    if (fault == Fault::restart) server.restart();
    const double promised = first.promised_until_ms();
    lab::wait_until(
        [&] {
            return first.told_ms() > 0 || first.promised_until_ms() > promised || second.granted();
        },
        cap, "the holder to renew, or to be told");
    if (fault != Fault::restart) {
        lab::wait_until([&] { return first.told_ms() > 0; }, cap, "the holder to be told");
        seen.told_ms = first.told_ms() - at;
        (fault == Fault::hang ? server.resume : server.restart)();
    }
    const double back = boot_ms();
    seen.kept = first.believes() && !second.granted();
    if (seen.kept && first.release() != ReleaseResult::released)
        throw SelfCheck("a lease that was kept could not be released");
    const auto answer = second.answer();
    if (answer) throw SelfCheck("the next holder: " + answer.message() + ": " + second.words());
    tally.add(watch(first, second, long_cap));
    seen.again_ms = std::max(0.0, second.granted_ms() - back);
    if (first.lease().fencing_token().value != 0)
        tally.add_tokens(first.lease().fencing_token(), second.lease().fencing_token());
    return seen;
}

void add_rows(Bench& bench, const SetUp& set_up, const std::vector<Fate>& all, const Tally& tally,
              int ttl_ms) {
    if (all.empty()) return;
    report(bench, set_up, tally);
    report(bench, set_up, all, ttl_ms, "renewed after the server was back",
           "time until the next grant, from when the server was back", "the ttl is x ms");
}

struct Played {
    std::vector<Fate> seen[std::size(faults)];
    Tally tally[std::size(faults)];
    std::string failure;
};

void run(Bench& bench) {
    const int ttl_ms = 1000;   // etcd grants whole seconds
    const int long_ms = 4000;  // a server has to be back within it
    const int rounds = bench.options.pick(1, 1, 10);
    const std::size_t kinds = bench.options.pick(2U, 3U, 3U);
    std::vector<std::function<Server()>> starts;
    const auto has = [&](const char* backend) { return bench.site.find(backend) != nullptr; };
    if (has("redis")) starts.push_back([] { return redis("durable", true); });
    if (has("redis")) starts.push_back([] { return redis("memory only", false); });
    if (has("postgresql")) starts.push_back(postgresql);
    if (has("mysql")) starts.push_back(mysql);
    if (has("zookeeper")) starts.push_back(zookeeper);
    if (has("etcd")) starts.push_back(etcd);
    std::vector<std::optional<Server>> servers(starts.size());
    std::vector<Played> played(starts.size());
    {
        std::vector<std::jthread> all;  // side by side: each mostly waits
        for (std::size_t i = 0; i < starts.size(); ++i)
            all.emplace_back([&, i] {
                try {
                    servers[i] = starts[i]();
                    int number = 0;
                    for (int round = 0; round < rounds; ++round)
                        for (std::size_t f = 0; f < kinds && !bench.stopped(); ++f) {
                            const auto [fault, words] = faults[f];
                            const int ttl = fault == Fault::restart ? long_ms : ttl_ms;
                            played[i].seen[f].push_back(
                                play(bench, *servers[i], of(*servers[i], fault, words, ttl), fault,
                                     number++, ttl, played[i].tally[f]));
                        }
                } catch (const std::exception& error) {
                    played[i].failure = error.what();
                }
            });
    }
    for (std::size_t i = 0; i < starts.size(); ++i) {
        for (std::size_t f = 0; f < kinds && servers[i]; ++f) {
            const auto [fault, words] = faults[f];
            const int ttl = fault == Fault::restart ? long_ms : ttl_ms;
            add_rows(bench, of(*servers[i], fault, words, ttl), played[i].seen[f],
                     played[i].tally[f], ttl);
        }
        if (played[i].failure.empty()) continue;
        Row row;
        row.scenario = id;
        row.backend = servers[i] ? servers[i]->deployment.label() : "a server";
        row.metric = "failed";
        row.note = played[i].failure;
        row.status = Status::failed;
        bench.add(std::move(row));
    }
}

}  // namespace

Scenario c18_single_point() {
    return {
        id, "the server hangs, crashes and is back at once, or is back late, while a lock is held",
        "A holder has renewed, another client waits; then SIGSTOP for longer than the ttl, "
        "SIGKILL and an immediate restart with what was on the disk, or SIGKILL and a restart "
        "after the holder was told. Told: lost() was requested. Both leases are looked at at the "
        "same moments. A server of its own for each; SQLite has none, Redlock's are in C14.",
        false, [](const Options&, const Site&) {
            return std::vector<Step>{{"servers hung, crashed, restarted, all backends", run}};
        }};
}

}  // namespace holdfast::bench
