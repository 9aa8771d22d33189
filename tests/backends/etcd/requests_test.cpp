// The README says exactly what is sent; here it is read off the wire. And what a hand-over costs.
#include <algorithm>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/etcd_server.hpp>
#include <holdfast/lab/grpc_server.hpp>
#include <holdfast/lab/proxy.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "client.hpp"
#include "shown.hpp"
#include "waiter.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using namespace std::chrono_literals;
using test_support::waiters_of;

namespace {

/// What stands in the README between <!-- NAME --> and the end of the block of code after it.
std::string block(const std::string& name) {
    std::ifstream file(ETCD_README);
    std::stringstream all;
    all << file.rdbuf();
    const std::string text = all.str();
    const auto mark = text.find("<!-- " + name + " -->");
    REQUIRE(mark != text.npos);
    const auto begin = text.find("```\n", mark) + 4, end = text.find("```", begin);
    REQUIRE(end != text.npos);
    // A line that begins with two blanks goes on with the one before.
    return std::regex_replace(text.substr(begin, end - begin), std::regex("\n +"), " ");
}

/// Reads along what a client sends on its first connection.
class Tap final : lab::GrpcServer::Listener {
public:
    explicit Tap(lab::Proxy& p) : proxy_(p) { proxy_.record(); }
    /// What it has asked for since the last call, with a line for each request; what differs each
    /// time is named.
    std::string sent(const hf::Lease& by) {
        const std::string all = proxy_.recorded(lab::Direction::to_server);
        http_.receive(all.substr(read_));
        read_ = all.size();
        (void)http_.output();
        const std::pair<const char*, const char*> each[] = {{"lease [1-9][0-9]*", "lease LEASE"},
                                                            {"\\) = [1-9][0-9]*", ") = REVISION"}};
        std::string out = std::exchange(lines_, {});
        for (const auto& [what, name] : each)
            out = std::regex_replace(out, std::regex(what), name);
        const std::string owner(by.owner_id());
        for (auto at = out.find(owner); at != out.npos; at = out.find(owner))
            out.replace(at, owner.size(), "OWNER");
        return out;
    }

private:
    void message(std::int32_t, const lab::GrpcServer::Request& r, std::string bytes) override {
        lines_ += holdfast::test::shown(r.path, bytes) + "\n";
    }
    lab::Proxy& proxy_;
    lab::GrpcServer http_{*this};
    std::size_t read_ = 0;
    std::string lines_;
};

/// Of the keys that begin so.
std::set<std::string> leases_of(const lab::EtcdServers& server, const std::string& prefix) {
    const auto shown = server.ctl({"get", "--prefix", "--keys-only", "-w", "json", prefix});
    const std::regex one("\"lease\":([0-9]+)");
    std::set<std::string> out;
    for (std::sregex_iterator at(shown.begin(), shown.end(), one), end; at != end; ++at)
        out.insert((*at)[1].str());
    return out;
}

/// How often a client has kept the lease of its waiters alive, at most.
std::uint64_t beats_since(hf::boot_clock::time_point begin) {
    return static_cast<std::uint64_t>((hf::boot_clock::now() - begin) / 3s) + 1;
}

}  // namespace

TEST_CASE("requests: one acquire, renewal and release, exactly as the README has them") {
    auto server = lab::EtcdServers::start({});
    lab::Proxy proxy(server.port(0));
    Tap tap(proxy);
    const auto client =
        hf::Client::open("etcd://127.0.0.1:" + std::to_string(proxy.port()) + "/locks?ttl=10s")
            .value();
    const auto lock = client.make_lock("N").value();
    const auto compare = [&](const char* name, const hf::Lease& lease) {
        const auto sent = tap.sent(lease);
        INFO(sent);
        CHECK(sent == block(name));
    };
    auto lease = lock->acquire().value();
    compare("acquire", lease);
    // A lease of etcd's that is older than half a second is used for nothing new.
    lab::wait_until([&] { return lease.valid_until() - hf::boot_clock::now() < 9s; }, 5s,
                    "the lease is no longer young");
    REQUIRE(lease.renew().has_value());
    compare("renew", lease);
    CHECK(lease.release() == hf::ReleaseResult::released);
    compare("release", lease);
}

TEST_CASE("requests: a reader, a downgrade and permits, exactly as the README has them") {
    auto server = lab::EtcdServers::start({});
    lab::Proxy proxy(server.port(0));
    Tap tap(proxy);
    const auto client =
        hf::Client::open("etcd://127.0.0.1:" + std::to_string(proxy.port()) + "/locks?ttl=10s")
            .value();
    const auto shared = client.make_lock("N", {.kind = hf::Kind::shared_mutex}).value();
    const auto permits = client.make_lock("N", {.kind = hf::Kind::semaphore, .limit = 5}).value();
    // A lease may have to be asked for, or not: what comes last is the transaction.
    const auto compare = [&](const char* name, const hf::Lease& lease) {
        const auto all = tap.sent(lease);
        const auto transaction = all.substr(all.rfind("KV/Txn"));
        INFO(transaction);
        CHECK(transaction == block(name));
    };
    auto reader = shared->acquire_shared().value();
    compare("acquire-shared", reader);
    reader.release();
    auto writer = shared->acquire().value();
    REQUIRE(writer.downgrade().has_value());
    compare("downgrade", writer);
    writer.release();
    auto three = permits->acquire({.permits = 3}).value();
    compare("acquire-permits", three);
    three.release();
    compare("release-permits", three);
}

TEST_CASE("requests: cycles that follow each other share a lease of the server's") {
    auto server = lab::EtcdServers::start({});
    const auto client =
        hf::Client::open("etcd://127.0.0.1:" + std::to_string(server.port(0)) + "?ttl=10s").value();
    const auto lock = client.make_lock("often").value();
    lock->acquire().value().release();
    const auto before = client.stats().requests;
    constexpr std::uint64_t cycles = 50;
    const auto begin = hf::boot_clock::now();
    for (std::uint64_t i = 0; i < cycles; ++i)
        REQUIRE(lock->acquire().value().release() == hf::ReleaseResult::released);
    const auto halves = static_cast<std::uint64_t>((hf::boot_clock::now() - begin) / 500ms);
    CHECK(client.stats().requests - before <= 2 * cycles + halves + 1);
}

TEST_CASE("requests: a hand-over costs the same for any number of waiters") {
    auto server = lab::EtcdServers::start({});
    const auto url = "etcd://127.0.0.1:" + std::to_string(server.port(0)) + "?ttl=10s";
    const auto holder = hf::Client::open(url).value(), others = hf::Client::open(url).value();
    const auto ours = holder.make_lock("line").value(), theirs = others.make_lock("line").value();
    for (const std::size_t waiters : {1U, 50U}) {
        auto held = ours->acquire().value();
        std::vector<test_support::Waiter> crowd;
        for (std::size_t i = 0; i < waiters; ++i)
            crowd.emplace_back(*theirs, hf::AcquireOptions());
        const auto granted = [&] {
            return std::count_if(crowd.begin(), crowd.end(),
                                 [](const auto& w) { return w.done(); });
        };
        lab::wait_until([&] { return waiters_of(holder, "line") == waiters; }, 10s, "all wait");
        // Whoever may be granted at once has a lease of its own first, and waits on that of all
        // waiters then.
        lab::wait_until([&] { return leases_of(server, "/holdfast/line/").size() == 2; }, 10s,
                        "the holder has a lease, and the waiters have another one");
        const auto standing = others.stats().requests;
        const auto joined = hf::boot_clock::now();
        crowd.emplace_back(*theirs, hf::AcquireOptions());
        lab::wait_until([&] { return waiters_of(holder, "line") == waiters + 1; }, 10s,
                        "one more waits");
        CHECK(others.stats().requests - standing <= 1 + beats_since(joined));
        const auto before = others.stats().requests + holder.stats().requests;
        const auto begin = hf::boot_clock::now();
        held.release();
        lab::wait_until([&] { return granted() == 1; }, 10s, "the first one has it");
        CHECK(others.stats().requests + holder.stats().requests - before <= 3 + beats_since(begin));
        lab::wait_until(
            [&] {
                std::erase_if(crowd, [](test_support::Waiter& w) {
                    return w.done() && w.lease().release() == hf::ReleaseResult::released;
                });
                return crowd.empty();
            },
            30s, "all have had it");
    }
}
