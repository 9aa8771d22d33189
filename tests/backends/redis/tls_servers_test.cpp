// TLS to several servers: Sentinels and the servers that they name, and those of a cluster.
#include <fstream>
#include <future>
#include <holdfast/holdfast.hpp>

#include "cap.hpp"
#include "catch.hpp"
#include "examined.hpp"
#include "heard.hpp"
#include "holdfast/lab/redis_cluster.hpp"
#include "holdfast/lab/redis_set.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "resp/errors.hpp"
#include "rig.hpp"

using namespace redis_tests;
using holdfast::ReleaseResult;
using holdfast::lab::RedisCluster;
using holdfast::lab::RedisSet;
using holdfast::lab::TempDir;
using holdfast::lab::TlsFiles;
using holdfast::resp::Error;
using test_support::cap;

namespace {

std::string trusting(const std::filesystem::path& ca) {
    return "tls_ca_file=" + ca.string();
}

std::string with_own(const TlsFiles& own) {
    return "&tls_cert_file=" + own.cert.string() + "&tls_key_file=" + own.key.string();
}

std::string ports_at(const std::string& host, std::uint16_t port) {
    return host + ":" + std::to_string(port);
}

/// What became of one acquire, and what was said of it. A lock that is granted is released.
struct Came {
    Came(Rig& rig, const std::string& name) {
        Try t(name);
        rig.attempt(t);
        why = t.error();
        words = t.a.detail;
        granted = t.granted();
        if (granted) CHECK(rig.release(t) == ReleaseResult::released);
    }
    bool is(Error e) const { return why == holdfast::resp::make(e); }
    holdfast::error_code why;
    std::string words;
    bool granted = false;
};

Came came_of(const std::string& url, const std::string& query, const std::string& name = "a") {
    Rig rig(url, query);
    return Came(rig, name);
}

/// It is refused for that reason, in these words.
void check_refused(const std::string& url, const std::string& query, Error why,
                   const std::vector<std::string>& words) {
    const auto came = came_of(url, query);
    INFO(came.why.message() << ": " << came.words);
    CHECK(came.is(why));
    for (const auto& some : words)
        CHECK_THAT(came.words, ContainsSubstring(some));
}

/// In the end: on a busy machine a Sentinel may be too late.
void check_granted(const std::string& url, const std::string& query) {
    Rig rig(url, query);
    holdfast::lab::wait_until([&] { return Came(rig, "a").granted; }, cap(30s), "it is granted");
}

/// By a lane, while nothing runs the engine: it has a connection of its own.
void check_lane(Rig& rig, const std::string& name) {
    auto lane = rig.backend->open_lane();
    REQUIRE(lane != nullptr);
    for (int i = 0; i < 2; ++i) {
        Try t(name);
        attempt(*lane, t);
        INFO(t.a.detail);
        REQUIRE(t.granted());
        CHECK(release(*lane, t) == ReleaseResult::released);
    }
}

void check_silent(const std::string& url) {
    const auto found = not_sound(url);
    for (const auto& [id, words] : found)
        UNSCOPED_INFO(id << " " << words);
    CHECK(found.empty());
}

/// A holder and a waiter of one name.
struct Two {
    Two(const std::string& url, const std::string& name)
        : client(holdfast::Client::open(url).value()),
          other(holdfast::Client::open(url, {.events = heard.sink()}).value()),
          lease(client.make_lock(name).value()->acquire({.wait = 30s}).value()),
          wanted(other.make_lock(name).value()),
          waits(std::async(std::launch::async, [this] { return wanted->acquire({.wait = 60s}); })) {
        holdfast::lab::wait_until([this] { return heard.waits(); }, cap(10s), "it waits");
    }
    /// The holder still holds, and hands over.
    holdfast::Lease hand_over() {
        CHECK(lease.renew().has_value());
        CHECK(lease.valid());
        CHECK(waits.wait_for(0s) == std::future_status::timeout);
        CHECK(lease.release() == ReleaseResult::released);
        auto next = waits.get();
        REQUIRE(next.has_value());
        CHECK(next->fencing_token().value > lease.fencing_token().value);
        return std::move(*next);
    }
    test_support::Heard heard;
    holdfast::Client client, other;
    holdfast::Lease lease;
    std::unique_ptr<holdfast::Lock> wanted;
    std::future<holdfast::result<holdfast::Lease>> waits;
};

/// A client that was refused because of a file goes on once that file is another.
void check_reload(const std::string& url, const std::string& query, const TlsFiles& right,
                  const TlsFiles& foreign) {
    const TempDir dir;
    const auto file = dir / "ca";
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(foreign.ca, file, over);
    Rig rig(url, trusting(file) + query);
    CHECK(Came(rig, "a").is(Error::tls));
    std::filesystem::copy_file(right.ca, file, over);
    // What was begun before may fail yet.
    holdfast::lab::wait_until([&] { return Came(rig, "a").granted; }, cap(10s), "it goes on");
}

void tell_all(RedisCluster& cluster, const std::vector<std::string>& command) {
    for (std::size_t i = 0; i < cluster.size(); ++i)
        REQUIRE(cluster.server(i).cli(command).is_ok());
}

std::vector<std::string> serves(const TlsFiles& files) {
    return {"CONFIG",          "SET", "tls-cert-file", files.cert.string(), "tls-key-file",
            files.key.string()};
}

}  // namespace

TEST_CASE("TLS: under Sentinels a lock is renewed, handed over, and follows a failover",
          "[sentinel]") {
    holdfast::lab::RedisSetOptions options;
    options.server.tls = true;
    options.server.append_only = true;
    options.server.config = {"min-replicas-to-write 1"};
    auto set = RedisSet::start(std::move(options));
    const auto query = trusting(set.server(0).ca_file());
    const auto url = set.url() + "?" + query;
    check_silent(url);
    const auto clear = set.url(set.clear_sentinel_ports());
    check_granted(clear, query + "&sentinel_tls=no");
    {
        Rig rig(set.url(), query);
        holdfast::lab::wait_until([&] { return Came(rig, "lane").granted; }, cap(30s), "granted");
        check_lane(rig, "lane");
    }

    for (std::size_t i = 0; i < set.size(); ++i)
        REQUIRE(set.server(i).cli({"CONFIG", "SET", "min-replicas-to-write", "0"}).is_ok());
    Two two(url, "held");
    // Until the replicas have it, a switch may lose it.
    for (std::size_t i = 1; i < set.size(); ++i)
        holdfast::lab::wait_until(
            [&] {
                return set.server(i).cli({"EXISTS", "held"}).integer == 1;
            },
            10s, "the replica has it");
    const auto former = set.fail_over();
    set.wait_replaced(former, cap(60s));
    holdfast::lab::wait_until(
        [&] { return two.client.stats().moves == 1 && two.other.stats().moves == 1; }, cap(30s),
        "both have moved");
    const auto now = set.primary();
    CHECK(now != former);
    const auto next = two.hand_over();
    CHECK(set.server(now).cli({"GET", "held"}).text == next.owner_id());
}

namespace {

/// Sentinels of one server that want certificates of their clients.
RedisSet start_guarded() {
    holdfast::lab::RedisSetOptions options;
    options.count = 1;
    options.server.tls = true;
    options.server.config = {"tls-auth-clients yes"};
    options.sentinel_config = {"tls-auth-clients yes", "bind 127.0.0.1 127.0.0.2"};
    return RedisSet::start(std::move(options));
}

std::vector<std::string> sentinels_at(const std::string& host,
                                      const std::vector<std::uint16_t>& ports) {
    std::vector<std::string> all;
    for (const auto port : ports)
        all.push_back("Sentinel " + ports_at(host, port));
    return all;
}

std::vector<std::string> and_all(std::string words, std::vector<std::string> more) {
    more.push_back(std::move(words));
    return more;
}

}  // namespace

TEST_CASE("TLS: Sentinels that cannot be spoken to are named, with what to do", "[sentinel]") {
    auto set = start_guarded();
    const TempDir dir;
    const auto foreign = holdfast::lab::make_tls_files(dir.path());
    const TlsFiles right = set.server(0).tls_files();
    const auto own = with_own(right), good = trusting(right.ca) + own;
    const auto& ports = set.sentinel_ports();
    const auto all = sentinels_at("127.0.0.1", ports);
    const auto& in_clear = set.clear_sentinel_ports();
    check_granted(set.url(), good);
    check_refused(set.url(), trusting(foreign.ca) + own, Error::tls,
                  and_all("tls_ca_file must have", all));
    check_refused(set.url(), trusting(right.ca), Error::tls,
                  and_all("set tls_cert_file and tls_key_file", all));
    check_refused(
        set.url(in_clear), good, Error::no_sentinel,
        and_all("as of a port without TLS (sentinel_tls=no)", sentinels_at("127.0.0.1", in_clear)));
    check_refused("redis" + set.url().substr(6), {}, Error::no_sentinel,
                  and_all("as of a port with TLS (rediss+sentinel://)", all));
    check_refused(set.url(), good + "&sentinel_tls=no", Error::no_sentinel,
                  and_all("as of a port with TLS (sentinel_tls=yes)", all));
    check_reload(set.url(), own, right, foreign);

    // The certificate is for 127.0.0.1 only.
    const auto mixed = [&](std::size_t right_ones) {
        std::string url = "rediss+sentinel://";
        for (std::size_t i = 0; i < ports.size(); ++i)
            url +=
                (i > 0 ? "," : "") + ports_at(i < right_ones ? "127.0.0.1" : "127.0.0.2", ports[i]);
        return url + "/" + RedisSet::name;
    };
    check_granted(mixed(2), good);
    check_refused(
        mixed(1), good, Error::tls,
        and_all("not for the host 127.0.0.2", sentinels_at("127.0.0.2", {ports[1], ports[2]})));

    const TempDir other;
    const auto named =
        holdfast::lab::make_certificate(right, other.path(), {.names = "DNS:elsewhere.example"});
    REQUIRE(set.server(0).cli(serves(named)).is_ok());
    check_refused(set.url(), good, Error::tls,
                  {ports_at("127.0.0.1", set.server(0).port()) + ", the primary of",
                   "not for the host 127.0.0.1"});
}

TEST_CASE("TLS: in a cluster a lock is renewed, handed over, and found where its slot is",
          "[cluster]") {
    holdfast::lab::RedisClusterOptions options;
    options.replicas = 1;
    options.server.tls = true;
    options.server.append_only = true;
    options.server.config = {"cluster-require-full-coverage no",
                             "cluster-allow-reads-when-down no"};
    auto cluster = RedisCluster::start(std::move(options));
    const auto query = trusting(cluster.server(0).ca_file());
    const auto url = cluster.url() + "?" + query;
    check_silent(url);
    {
        Rig rig(cluster.url(), query);
        holdfast::lab::wait_until([&] { return Came(rig, "held").granted; }, cap(30s), "granted");
        check_lane(rig, "held");
    }

    Two two(url, "held");
    CHECK(two.lease.renew().has_value());
    const auto slot = cluster.slot_of("held");
    const auto to = (cluster.owner(slot) + 1) % 3;
    cluster.move(slot, to);
    const auto next = two.hand_over();
    CHECK(cluster.server(to).cli({"GET", "held"}).text == next.owner_id());
}

TEST_CASE("TLS: the name that the certificate of a cluster's server must have", "[cluster]") {
    holdfast::lab::RedisClusterOptions options;
    options.server.tls = true;
    auto cluster = RedisCluster::start(std::move(options));
    const TlsFiles authority = cluster.server(0).tls_files();
    const auto ca = trusting(authority.ca);
    const TempDir one, two;
    const auto named =
        holdfast::lab::make_certificate(authority, one.path(), {.names = "DNS:localhost"});
    const auto foreign =
        holdfast::lab::make_certificate(authority, two.path(), {.names = "DNS:elsewhere.example"});
    tell_all(cluster, serves(named));
    const auto url = cluster.url("localhost");
    const auto slot = cluster.slot_of("a");
    const auto from = cluster.owner(slot), to = (from + 1) % 3;

    // One certificate for one name, and a cluster that announces addresses.
    check_refused(url, ca, Error::tls,
                  {"rediss+cluster://" + ports_at("127.0.0.1", cluster.server(from).port()),
                   "not for the host 127.0.0.1", "set tls_server_name"});
    check_granted(url, ca + "&tls_server_name=localhost");
    tell_all(cluster, {"CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"});
    check_granted(url, ca);
    tell_all(cluster, {"CONFIG", "SET", "cluster-announce-hostname", "localhost",
                       "cluster-preferred-endpoint-type", "hostname"});
    holdfast::lab::wait_until(
        [&] {
            for (std::size_t i = 0; i < cluster.size(); ++i)
                for (const auto& range : cluster.server(i).cli({"CLUSTER", "SLOTS"}).elements)
                    if (range.elements.at(2).elements.at(0).text != "localhost") return false;
            return true;
        },
        cap(30s), "each server knows the others' names");
    check_granted(url, ca);

    // MOVED leads to a server whose certificate is for another name.
    REQUIRE(cluster.server(to).cli(serves(foreign)).is_ok());
    Rig rig(url, ca);
    Try t("a");
    REQUIRE(rig.attempt(t).granted());
    cluster.move(slot, to);
    const auto refused = rig.renew(t);
    INFO(refused.detail);
    CHECK(refused.renewal == spi::Held::Renewal::unknown);
    CHECK(refused.renewal_error == holdfast::resp::make(Error::tls));
    CHECK_THAT(refused.detail, ContainsSubstring("rediss+cluster://" +
                                                 ports_at("localhost", cluster.server(to).port())));
    CHECK_THAT(refused.detail, ContainsSubstring("not for the host localhost"));
    REQUIRE(cluster.server(to).cli(serves(named)).is_ok());
    holdfast::lab::wait_until([&] { return rig.renew(t).renewal == spi::Held::Renewal::renewed; },
                              cap(10s), "renewed at the server that has the slot");
}

TEST_CASE("TLS: a cluster's server that cannot be spoken to is named, with what to do",
          "[cluster]") {
    holdfast::lab::RedisClusterOptions options;
    options.server.tls = true;
    options.server.config = {"tls-auth-clients yes"};
    auto cluster = RedisCluster::start(std::move(options));
    const TempDir dir;
    const auto foreign = holdfast::lab::make_tls_files(dir.path());
    const TlsFiles right = cluster.server(0).tls_files();
    const auto own = with_own(right), good = trusting(right.ca) + own;
    const std::string member = "+cluster://127.0.0.1:";
    check_granted(cluster.url(), good);
    check_refused(cluster.url(), trusting(foreign.ca) + own, Error::tls,
                  {"tls_ca_file must have", member});
    check_refused(cluster.url(), trusting(right.ca), Error::tls,
                  {"set tls_cert_file and tls_key_file", member});
    check_refused("redis" + cluster.url().substr(6), {}, Error::closed,
                  {"as of a port with TLS (rediss+cluster://)", member});
    const auto clear = cluster.server(0).cli({"CONFIG", "GET", "port"}).elements.at(1).text;
    check_refused("rediss+cluster://127.0.0.1:" + clear, good, Error::no_answer,
                  {"as of a port without TLS", member + clear});
    check_reload(cluster.url(), own, right, foreign);
    CHECK_THROWS(Rig(cluster.url(), trusting("/nonexistent/ca.pem")));

    // A file that is broken later is reported once, and not for each server.
    const auto file = dir / "of_client";
    std::filesystem::copy_file(right.ca, file);
    Rig rig(cluster.url(), trusting(file) + own);
    REQUIRE(rig.list("").has_value());
    std::ofstream(file) << "half";
    for (std::size_t i = 0; i < cluster.size(); ++i)
        cluster.server(i).cli({"CLIENT", "KILL", "TYPE", "normal"});
    holdfast::lab::wait_until([&] { return rig.list("").has_value(); }, cap(10s),
                              "each is spoken to with what was read before");
    REQUIRE(rig.events.warnings.size() == 1);
    CHECK_THAT(rig.events.warnings[0], ContainsSubstring("the one read before stays in use"));
}
