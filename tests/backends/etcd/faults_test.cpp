// What members do to clients: they die, hang, change their leader, forget history and run out of
// space. And other clients of the same keys.
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/free_port.hpp>
#include <holdfast/lab/process.hpp>
#include <holdfast/lab/proxy.hpp>
#include <holdfast/lab/temp_dir.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "client.hpp"
#include "waiter.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using namespace std::chrono_literals;
using test_support::holders_of;
using test_support::waiters_of;

namespace {

hf::Client open(const std::string& url) {
    return hf::Client::open(url).value();
}

std::string local(std::uint16_t port) {
    return "127.0.0.1:" + std::to_string(port);
}

}  // namespace

TEST_CASE("hosts: one that is refused, silent or unknown does not keep the others away") {
    auto servers = lab::EtcdServers::start({.count = 3});
    const auto leader = servers.leader();
    REQUIRE(leader.has_value());
    const auto hung = (*leader + 1) % 3;
    servers.pause(hung);
    // Nothing listens at port 1.
    const auto good = local(servers.port((*leader + 2) % 3)), silent = local(servers.port(hung));
    for (const auto& hosts : {"127.0.0.1:1," + good, silent + "," + good,
                              "no-such-host.invalid:1," + good, good + "," + silent}) {
        INFO(hosts);
        const auto client = open("etcd://" + hosts + "?request_timeout=2s");
        hf::Diagnostics words;
        hf::AcquireOptions patient;
        patient.wait = 10s;
        patient.diagnostics = &words;
        auto lease = client.make_lock("hosts").value()->acquire(patient);
        INFO(words.text());
        REQUIRE(lease.has_value());
        CHECK(lease->release() == hf::ReleaseResult::released);
    }
    servers.resume(hung);
}

TEST_CASE("hosts: all requests share a connection, and one meets a dead one at most") {
    auto server = lab::EtcdServers::start({});
    lab::Proxy proxy(server.port(0));
    const auto client = open("etcd://" + local(proxy.port()));
    const auto ask_at_once = [&] {
        std::vector<std::jthread> callers;
        for (int i = 0; i < 4; ++i)
            callers.emplace_back([&] { (void)client.inspect("idle"); });
    };
    ask_at_once();
    ask_at_once();
    CHECK(proxy.counters().connections_open == 1);
    CHECK(proxy.cut_all() == 1);
    CHECK(client.inspect("idle").has_value());
}

TEST_CASE("hosts: a learner serves no requests, and the next member is asked") {
    auto server = lab::EtcdServers::start({});
    const lab::Port client_port = lab::free_port(), peer_port = lab::free_port();
    const auto where = [](const lab::Port& p) {
        return "http://127.0.0.1:" + std::to_string(p.number());
    };
    const auto added =
        server.ctl({"member", "add", "late", "--learner", "--peer-urls=" + where(peer_port)});
    // ETCD_INITIAL_CLUSTER="late=...,m0=..."
    const std::string mark = "ETCD_INITIAL_CLUSTER=\"";
    const auto begin = added.find(mark) + mark.size();
    REQUIRE(begin >= mark.size());
    const lab::TempDir directory;
    lab::ProcessOptions o;
    o.argv = {"etcd",
              "--name",
              "late",
              "--data-dir",
              (directory / "data").string(),
              "--listen-client-urls",
              where(client_port),
              "--advertise-client-urls",
              where(client_port),
              "--listen-peer-urls",
              where(peer_port),
              "--initial-advertise-peer-urls",
              where(peer_port),
              "--initial-cluster",
              added.substr(begin, added.find('"', begin) - begin),
              "--initial-cluster-state",
              "existing"};
    o.package = "etcd-server";
    o.log = directory / "log";
    lab::Process learner(std::move(o));
    const auto hosts = local(client_port.number()) + "," + local(server.port(0));
    lab::wait_until(
        [&] {
            std::ifstream log(directory / "log");
            const std::string said(std::istreambuf_iterator<char>(log), {});
            return said.find("serving insecure client requests") != said.npos ||
                   said.find("serving client traffic insecurely") != said.npos;  // 3.5
        },
        20s, "the learner listens");
    const auto client = open("etcd://" + hosts + "?request_timeout=3s");
    auto lease = client.make_lock("learner").value()->acquire({.wait = 10s});
    REQUIRE(lease.has_value());
    CHECK(lease->release() == hf::ReleaseResult::released);
    const auto promised = client.probe();
    REQUIRE(promised.has_value());
    CHECK(promised->safety == hf::SafetyClass::b);  // one votes
}

TEST_CASE("a cluster: the leader dies, and a lease and a waiter live on") {
    auto servers = lab::EtcdServers::start({.count = 3});
    const auto client = open(servers.url() + "?ttl=10s"), other = open(servers.url() + "?ttl=10s");
    auto held = client.make_lock("leader").value()->acquire({.wait = 10s}).value();
    const auto token = held.fencing_token();
    test_support::Waiter next(*other.make_lock("leader").value(), {});
    lab::wait_until([&] { return waiters_of(client, "leader") == 1; }, 10s, "it waits");
    const auto dead = servers.kill_leader();
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals >= renewals + 2; }, 20s, "renewals");
    CHECK(held.valid());
    CHECK_FALSE(next.done());
    CHECK(held.release() == hf::ReleaseResult::released);
    auto lease = next.lease(10s);
    CHECK(lease.fencing_token() > token);
    servers.restart(dead);
    servers.wait_ready();
    CHECK(lease.release() == hf::ReleaseResult::released);
}

TEST_CASE("a cluster: a leader that is stopped costs no lease, and comes back harmless") {
    auto servers = lab::EtcdServers::start({.count = 3});
    const auto client = open(servers.url() + "?ttl=6s"), other = open(servers.url() + "?ttl=6s");
    auto held = client.make_lock("stopped").value()->acquire({.wait = 10s}).value();
    for (int i = 0; i < 2; ++i) {
        const auto leader = servers.leader();
        REQUIRE(leader.has_value());
        servers.pause(*leader);
        const auto renewals = client.stats().renewals;
        // Beyond the ttl: what the former leader remembers of the lease is over.
        const auto beyond = hf::boot_clock::now() + 7s;
        lab::wait_until(
            [&] {
                CHECK(held.valid());
                return client.stats().renewals >= renewals + 3 && hf::boot_clock::now() > beyond;
            },
            30s, "renewals at the others");
        servers.resume(*leader);
        CHECK(lab::stays_true([&] { return held.valid(); }, 1500ms));
        CHECK(other.make_lock("stopped").value()->acquire({.wait = 0ms}).error() ==
              errc::contended);
        servers.wait_ready();
    }
    CHECK(held.release() == hf::ReleaseResult::released);
}

TEST_CASE("history is compacted while a client waits") {
    auto servers = lab::EtcdServers::start();
    const auto client = open(servers.url()), other = open(servers.url());
    const auto lock = client.make_lock("compacted").value();
    for (int i = 0; i < 3; ++i) {
        auto held = lock->acquire({.wait = 5s}).value();
        test_support::Waiter waiter(*other.make_lock("compacted").value(), {});
        lab::wait_until([&] { return waiters_of(client, "compacted") == 1; }, 5s, "it waits");
        // What the watch has not been told of is gone when it goes on after the restart.
        servers.compact();
        if (i > 0) servers.restart_all();
        held.release();
        waiter.lease(10s).release();
    }
}

TEST_CASE("the waiters' lease ends behind our back: they stand in line again") {
    auto servers = lab::EtcdServers::start();
    const auto client = open(servers.url()), other = open(servers.url());
    auto held = client.make_lock("again").value()->acquire({.wait = 5s}).value();
    test_support::Waiter waiter(*other.make_lock("again").value(), {});
    const auto newest = [&] {
        return servers.post(0, "kv/range",
                            R"({"key":"L2hvbGRmYXN0Lw==","range_end":"L2hvbGRmYXN0MA==",)"
                            R"("sort_order":"DESCEND","sort_target":"CREATE","limit":"1"})");
    };
    lab::wait_until([&] { return lab::EtcdServers::text_after(newest(), "count") == "2"; }, 5s,
                    "it waits");
    const auto attempts = other.stats().attempts;
    lab::wait_until(
        [&] {
            // It may just be attached to another one.
            const auto key = newest();
            if (lab::EtcdServers::text_after(key, "count") == "2")
                servers.post(0, "lease/revoke",
                             R"({"ID":")" + lab::EtcdServers::text_after(key, "lease") + "\"}");
            return other.stats().attempts > attempts;
        },
        10s, "it has asked again");
    lab::wait_until([&] { return waiters_of(client, "again") == 1; }, 5s, "it waits again");
    CHECK(held.valid());
    CHECK(held.release() == hf::ReleaseResult::released);
    waiter.lease(10s).release();
}

TEST_CASE("a database that is full refuses clearly, and still releases") {
    auto servers = lab::EtcdServers::start({.arguments = {"--quota-backend-bytes", "1000000"}});
    const auto client = open(servers.url() + "?ttl=10s");
    auto held = client.make_lock("full").value()->acquire({.wait = 5s}).value();
    const std::string big(200'000, 'A');
    lab::wait_until(
        [&] {
            return servers.post(0, "kv/put", R"({"key":"YmlnCg==","value":")" + big + "\"}")
                       .find("space exceeded") != std::string::npos;
        },
        20s, "the alarm");
    hf::Diagnostics words;
    hf::AcquireOptions once;
    once.wait = 0ms;
    once.diagnostics = &words;
    const auto refused = client.make_lock("other").value()->acquire(once);
    REQUIRE_FALSE(refused.has_value());
    INFO(words.text());
    CHECK(refused.error() == errc::unavailable);
    CHECK(words.text().find("space") != std::string::npos);
    CHECK(held.release() == hf::ReleaseResult::released);
}

TEST_CASE("etcdctl lock and Holdfast wait for each other") {
    auto servers = lab::EtcdServers::start();
    const auto client = open(servers.url() + "?ttl=10s");
    const auto lock = client.make_lock("shared").value();
    lab::TempDir folder;
    const auto etcdctl = [&](std::vector<std::string> command) {
        lab::ProcessOptions o;
        o.argv = {"env",  "ETCDCTL_API=3",   "etcdctl", "--endpoints", servers.endpoints(),
                  "lock", "/holdfast/shared"};
        o.argv.insert(o.argv.end(), command.begin(), command.end());
        o.package = "etcd-client";
        o.log = folder / "log";
        return std::make_unique<lab::Process>(o);
    };
    // It holds: we wait, and get it when it is killed and its lease has ended, or has let go.
    auto theirs = etcdctl({});
    lab::wait_until([&] { return holders_of(client, "shared") == 1; }, 10s, "it holds");
    CHECK(client.inspect("shared").value().holders.front().foreign);
    CHECK(lock->acquire({.wait = 0ms}).error() == errc::contended);
    CHECK(client.break_lock("shared").error() == errc::not_supported);
    theirs->signal(SIGTERM);
    auto ours = lock->acquire({.wait = 20s}).value();
    // We hold: it waits.
    theirs = etcdctl({"true"});
    lab::wait_until([&] { return waiters_of(client, "shared") == 1; }, 10s, "it waits");
    CHECK(theirs->alive());
    CHECK(ours.release() == hf::ReleaseResult::released);
    CHECK(theirs->wait(20s)->code == 0);
}
