// A name server that answers after many seconds: whoever asks is told in time, nobody else waits,
// and a client closes while its look-up hangs.
#include <boost/asio/use_future.hpp>
#include <future>
#include <holdfast/holdfast.hpp>
#include <holdfast/spi/registry.hpp>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "cap.hpp"
#include "catch.hpp"
#include "client.hpp"
#include "deployment.hpp"
#include "heard.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/lab/zookeeper_server.hpp"
#include "slow_name.hpp"
#include "trial.hpp"

using namespace std::chrono_literals;
using namespace names_tests;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::boot_clock;
using hf::errc;
using test_support::cap;
using test_support::Heard;
using test_support::open;

namespace {

/// A backend's servers, and its URL with other names for their hosts.
struct Ground {
    explicit Ground(const std::string& backend) : servers(hf::deployments::start(backend)) {}
    std::string url(const std::vector<std::string>& hosts) const {
        return named(servers->url(), hosts);
    }
    std::string url(const std::vector<std::string>& hosts, const hf::deployments::Link& way) const {
        return named(servers->url(way), hosts);
    }
    static std::string named(std::string out, const std::vector<std::string>& hosts) {
        static const std::string here = "127.0.0.1";
        std::size_t host = 0;
        for (auto at = out.find(here); at != out.npos; at = out.find(here, at + 1))
            out.replace(at, here.size(), hosts[host++ % hosts.size()]);
        return out;
    }
    std::unique_ptr<hf::deployments::Deployment> servers;
};

/// Every backend of this program that connects to hosts.
std::vector<std::string> networked() {
    std::vector<std::string> names;
    for (const auto& d : hf::spi::Registry::linked().all())
        if (d->hosts != hf::spi::Descriptor::Hosts::none) names.push_back(d->name);
    REQUIRE(names.size() > 1);
    return names;
}

hf::result<hf::Lease> acquire(const hf::Client& client, hf::milliseconds wait,
                              hf::Diagnostics& words, const std::string& name = "N",
                              const hf::LockOptions& options = {}) {
    auto lock = client.make_lock(name, options);
    REQUIRE(lock.has_value());
    return (*lock)->acquire({.wait = wait, .diagnostics = &words});
}

}  // namespace

TEST_CASE("a name server that hangs: told in time, closed in time, and granted when it answers") {
    test_support::Trial& trial = test_support::this_trial();
    const std::string backend = GENERATE(from_range(networked()));
    INFO(backend);
    const Ground ground = Ground(backend);
    // One thread for each client, however often it asks; each node of Redlock looks for itself.
    const int threads = static_cast<int>(ground.servers->ports().size());
    SlowName slow("slow.test", "127.0.0.1");
    hf::Diagnostics words;
    {
        const auto client = open(ground.url({"slow.test"}));
        const auto asked = boot_clock::now();
        const auto lease = acquire(client, 0ms, words);
        const auto took = boot_clock::now() - asked;
        REQUIRE_FALSE(lease.has_value());
        INFO(words.text());
        CHECK(lease.error() == (backend == "redlock" ? errc::no_quorum : errc::unavailable));
        CHECK(words.text().find("slow.test") != std::string::npos);
        // An error that comes with the end of the call names the server only.
        const bool told = words.text().find("the name server does not answer") != std::string::npos;
        trial.holds(told, 400ms, "the name server is told of");
        trial.within(took, 1500ms, "an answer without a name");
        acquire(client, 0ms, words);
        CHECK(slow.waiting() == threads);
    }
    const auto client = open(ground.url({"slow.test"}));
    auto closing = std::make_unique<hf::Client>(open(ground.url({"slow.test"})));
    auto closed = std::async(std::launch::async, [&] {
        hf::Diagnostics unread;
        return acquire(*closing, 30s, unread).error();
    });
    lab::wait_until([&] { return slow.waiting() == 2 * threads; }, cap(10s),
                    "it asks for the name");
    const auto began = boot_clock::now();
    closing->close();
    CHECK(closed.get() == errc::closed);
    closing.reset();
    // close() waits a second for what is under way.
    trial.within(boot_clock::now() - began, 1500ms, "close()");

    slow.answer();
    // A busy machine may take longer than a request may.
    hf::result<hf::Lease> lease = acquire(client, 30s, words);
    for (int again = 0; again < 10 && !lease; ++again)
        lease = acquire(client, 30s, words);
    INFO(words.text());
    REQUIRE(lease.has_value());
    CHECK(lease->release() == hf::ReleaseResult::released);
}

TEST_CASE("a name that moves is looked up at each connect, and what it meant before is left") {
    const std::string backend = GENERATE(from_range(networked()));
    INFO(backend);
    if (backend == "redis-cluster") return;  // its servers say by which addresses they are reached
    const Ground ground = Ground(backend);
    const auto way = ground.servers->link();
    const auto at = [&](const std::string& address) {
        for (auto& proxy : *way)
            proxy.listen_at(address);
    };
    const auto cut = [&] {
        for (auto& proxy : *way)
            proxy.cut_all();
    };
    SlowName name("moving.test", "127.0.0.1");
    name.answer();
    Heard heard;
    const auto client = open(ground.url({"moving.test"}, *way), {.events = heard.sink()});
    const auto granted = [&] {
        hf::Diagnostics unread;
        auto lease = acquire(client, 0ms, unread);
        if (lease) lease->release();
        return lease.has_value();
    };
    hf::Diagnostics words;
    // A session of these ZooKeeper servers cannot last over all of it.
    const bool lasts = backend != "zookeeper";
    hf::LockOptions long_ttl;
    if (lasts) long_ttl.ttl = 60s;
    auto kept = acquire(client, 10s, words, "kept", long_ttl);
    INFO(words.text());
    REQUIRE(kept.has_value());
    REQUIRE(granted());
    // The names that Sentinels have are their own, and not those of the servers.
    const bool shown = backend != "redis-sentinel";
    const auto served_by = [&](const std::string& address) {
        const std::string said = client.inspect("kept").value().server;
        INFO(said);
        CHECK((said.find("moving.test:") == 0) == shown);
        return said.find('(' + address + ')') != std::string::npos;
    };
    CHECK(served_by("127.0.0.1") == shown);

    // Nothing is there yet. The former address goes on to answer, and must not be asked.
    name.means("127.0.0.2");
    cut();
    lab::wait_until([&] { return !granted(); }, cap(20s), "the former address is left");
    CHECK(lab::stays_true([&] { return !granted(); }, 500ms));
    at("127.0.0.2");
    lab::wait_until(granted, cap(20s), "the new address is found");
    lab::wait_until([&] { return !lasts || kept->renew().has_value(); }, cap(20s),
                    "the lease is renewed");
    CHECK(served_by("127.0.0.2") == shown);
    CHECK_FALSE(served_by("127.0.0.1"));

    // One server has become another one; members of one cluster are all the same.
    const bool moves = shown && backend != "etcd" && backend != "zookeeper";
    if (moves)
        lab::wait_until([&] { return !heard.of(hf::Event::Kind::moved).empty(); }, cap(5s),
                        "it is told");
    CHECK((client.stats().moves > 0) == moves);
    for (const auto& e : heard.of(hf::Event::Kind::moved)) {
        INFO(e.text);
        CHECK(e.text.find("(127.0.0.1)") < e.text.find("(127.0.0.2)"));
    }
    CHECK((!lasts || kept->release() == hf::ReleaseResult::released));
}

TEST_CASE("redlock: the names of a minority that hang keep nobody from the majority") {
    test_support::Trial& trial = test_support::this_trial();
    const Ground ground("redlock");
    SlowName slow("slow.test", "127.0.0.1"), slower("slower.test", "127.0.0.1"),
        quick("quick.test", "127.0.0.1");
    quick.answer();
    const auto client =
        open(ground.url({"slow.test", "slower.test", "quick.test", "quick.test", "quick.test"}));
    hf::Diagnostics words;
    const auto asked = boot_clock::now();
    auto lease = acquire(client, 10s, words);
    INFO(words.text());
    REQUIRE(lease.has_value());
    trial.within(boot_clock::now() - asked, 2s, "a grant by the majority");
    CHECK(lease->renew().has_value());
    CHECK(lease->release() == hf::ReleaseResult::released);
}

TEST_CASE("postgresql: a name that hangs costs its share of the time, and the next host serves") {
    test_support::Trial& trial = test_support::this_trial();
    const Ground ground("postgresql");
    SlowName slow("slow.test", "127.0.0.1");
    std::string url = ground.servers->url();
    url.insert(url.find("127.0.0.1"), "slow.test:1,");
    const std::regex its_own("request_timeout=[^&]*");
    REQUIRE(std::regex_search(url, its_own));
    url = std::regex_replace(url, its_own, "request_timeout=4s");
    const auto client = open(url);
    const auto lock = client.make_lock("N").value();
    const auto asked = boot_clock::now();
    // By the engine: a caller's own thread looks up no name.
    auto granted = lock->async_acquire({.wait = 10s}, boost::asio::use_future);
    CHECK(granted.get().valid());
    trial.within(boot_clock::now() - asked, 3s, "a grant by the other host");
}

TEST_CASE("zookeeper: a name that hangs does not keep the other servers away") {
    test_support::Trial& trial = test_support::this_trial();
    // Several hosts have to be one ensemble.
    const auto servers = lab::ZooKeeperServers::start({.count = 3});
    SlowName slow("slow.test", "127.0.0.1");
    for (const bool first : {true, false}) {
        const std::string good = "127.0.0.1:" + std::to_string(servers.port());
        const auto client =
            open("zookeeper://" + (first ? "slow.test:1," + good : good + ",slow.test:1"));
        hf::Diagnostics words;
        const auto asked = boot_clock::now();
        auto lease = acquire(client, 10s, words);
        INFO(words.text());
        REQUIRE(lease.has_value());
        trial.within(boot_clock::now() - asked, 2s, "a grant by the other server");
    }
}
