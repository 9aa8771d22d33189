// C1 over TLS: what one caller pays where every byte is encrypted, beside a bare OpenSSL client.
#include <holdfast/lab/redis_server.hpp>

#include "floors/contenders.hpp"
#include "floors/record.hpp"
#include "measure/alone.hpp"
#include "measure/trials.hpp"
#include "scenario.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* id = "C1";
constexpr const char* ours = "TLS";
constexpr const char* bare = "floor: bare OpenSSL";
constexpr std::size_t nodes = 5;

/// One server, and the nodes of Redlock, with one certificate.
class Servers {
public:
    Servers() {
        lab::RedisOptions options;
        options.tls = true;
        all_.push_back(lab::RedisServer::start(options));
        options.certificate = single().tls_files();
        for (std::size_t i = 0; i < nodes; ++i) {
            all_.push_back(lab::RedisServer::start(options));
            ports_.push_back(all_.back().port());
        }
    }
    lab::RedisServer& single() { return all_.front(); }
    const std::vector<std::uint16_t>& ports() const { return ports_; }
    std::filesystem::path authority() const { return all_.front().ca_file(); }
    Deployment redis() { return variant_of("redis", ours, single().url() + "?" + trusting()); }
    Deployment redlock() const {
        std::string url = "redlocks://";
        for (const auto port : ports_)
            url += (url.ends_with('/') ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
        // Nodes that have just started would not vote for a minute; none of these restarts.
        return variant_of("redlock", ours, url + "?durable=yes&fencing=off&" + trusting());
    }

private:
    std::string trusting() const { return "tls_ca_file=" + authority().string(); }
    std::vector<lab::RedisServer> all_;
    std::vector<std::uint16_t> ports_;
};

void report(Bench& bench, const std::vector<Measured>& all) {
    for (const Measured& m : all) {
        if (m.none()) continue;
        Row row = row_of(id, m, 1);
        row.metric = "acquire + release over TLS, p50";
        row.unit = "us";
        row.note = "one blocking caller";
        bench.add(row, spread_of(m.p50_us));
        const Measured* under = find(all, m.backend, bare);
        if (m.variant == bare || under == nullptr || under->none()) continue;
        row.metric = "time over a bare client's, over TLS";
        row.unit = "x";
        row.note = m.backend == "redis" ? "the very same requests"
                                        : "the documents' two commands at five nodes";
        bench.add(row, spread_of(ratios(m, *under, Of::p50)));
    }
}

void run(Bench& bench) {
    Servers servers;
    std::vector<Contender> all;
    const auto add = [&](const char* backend, const char* variant,
                         const std::function<Contender()>& make) {
        add_contender(bench, id, all, backend, variant, make);
    };
    add("redis", ours, [&] { return alone(servers.redis(), "bench/tls"); });
    add("redis", bare, [&] {
        return replay({servers.single().port()},
                      record_one_cycle(servers.redis(), servers.single()), servers.authority());
    });
    add("redlock", ours, [&] { return alone(servers.redlock(), "bench/tls"); });
    add("redlock", bare, [&] { return plain_pairs(servers.ports(), 1, servers.authority()); });
    const RoundPlan plan{id, bench.options.pick(5, 9, 15), bench.options.pick(0.08, 0.15, 0.5), 10};
    report(bench, measure_rounds(bench, plan, all));
}

std::vector<Step> plan(const Options&, const Site& site) {
    if (site.find("redis") == nullptr || site.find("redlock") == nullptr) return {};
    return {{"redis and redlock over TLS, and bare clients", run}};
}

}  // namespace

Scenario c1_tls() {
    return {id, "uncontended acquire + release over TLS",
            "Acquire + release by one blocking caller at one Redis server and, without a token, at "
            "five nodes of Redlock, all over TLS, interleaved with bare OpenSSL clients in random "
            "order; medians over rounds, ratios taken within a round.",
            false, plan};
}

}  // namespace holdfast::bench
