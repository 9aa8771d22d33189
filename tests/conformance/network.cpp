// What a network and a server can do to a request. Only backends with a network have these faults;
// for the others tests/conformance/blank.txt says why the cell is empty.
#include <boost/asio.hpp>
#include <future>
#include <iostream>
#include <random>
#include <thread>

#include "stalls.hpp"
#include "suite.hpp"

using namespace suite;
using lab::Direction;

namespace {

constexpr auto not_yet = std::future_status::timeout;

/// No answer, or none of a majority.
bool unreachable(const hf::error_code& ec) {
    return ec == errc::unavailable || ec == errc::no_quorum;
}

Proxies* proxy_or_none() {
    return backend().proxy();
}

/// One exchange that is cut at a position, on a client whose connections are warm.
struct Exchange {
    std::string what;
    std::function<void(hf::Client&, const std::string&name)> prepare, run;
};

}  // namespace

TEST_CASE("T1: a connection cut after every byte of acquire, renew and release", "[T1]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("cut");
    const auto watcher = open();
    std::size_t positions = 0;

    std::vector<std::string> ways{"on a lane", "on the engine"};
    // Elsewhere a loop of the caller's own is the engine once more.
    if (backend().redis() != nullptr && backend().name().starts_with("redis"))
        ways.emplace_back("on a loop of its own");
    for (const std::string& way : ways)
        for (const std::string what : {"acquire", "renew", "release"})
            for (const Direction direction : {Direction::to_server, Direction::to_client}) {
                boost::asio::io_context loop;  // outlives the client, as executors have to
                // A long ttl: no renewal but those that are asked for falls into an exchange. What
                // is cut is known at once; only a machine that stands still needs a time-out.
                auto client = open_proxied("ttl=60s&request_timeout=20s");
                const auto lock = lock_of(client, name);
                const auto told = [&](auto future) {
                    while (way == "on a loop of its own" && future.wait_for(0s) == not_yet) {
                        loop.restart();
                        loop.run_one_for(100ms);
                    }
                    return future.get();
                };
                const auto acquire = [&]() -> hf::result<hf::Lease> {
                    if (way == "on a lane") return lock->acquire({.wait = 5s});
                    std::promise<std::pair<hf::error_code, hf::Lease>> got;
                    const auto handler = [&](hf::error_code ec, hf::Lease l) {
                        got.set_value({ec, std::move(l)});
                    };
                    if (way == "on the engine")
                        lock->async_acquire({.wait = 5s}, handler);
                    else
                        lock->async_acquire({.wait = 5s},
                                            boost::asio::bind_executor(loop, handler));
                    auto [ec, lease] = told(got.get_future());
                    if (ec) return ec;
                    return std::move(lease);
                };
                const auto release = [&](hf::Lease& lease) {
                    if (way == "on a lane") return lease.release();
                    std::promise<hf::ReleaseResult> got;
                    const auto handler = [&](hf::error_code, hf::ReleaseResult r) {
                        got.set_value(r);
                    };
                    if (way == "on the engine")
                        lease.async_release(hf::Outcome::done, handler);
                    else
                        lease.async_release(hf::Outcome::done,
                                            boost::asio::bind_executor(loop, handler));
                    return told(got.get_future());
                };
                // The size of one exchange on warm connections: the least of three, since a
                // heartbeat may fall into one of them.
                const auto measure = [&] {
                    // A loop of its own: until that is worth a connection.
                    for (int i = 0; i < (way == "on a loop of its own" ? 20 : 2); ++i) {
                        auto warm = acquire();
                        REQUIRE(warm.has_value());
                        REQUIRE(warm->renew().has_value());
                        release(*warm);
                    }
                    if (what == "acquire") proxy->record();
                    auto lease = acquire();
                    REQUIRE(lease.has_value());
                    const auto acquired = proxy->recorded(direction).size();
                    if (what == "renew") proxy->record();
                    if (what != "release") REQUIRE(lease->renew().has_value());
                    if (what == "renew") return proxy->recorded(direction).size();
                    if (what == "release") proxy->record();
                    release(*lease);
                    return what == "acquire" ? acquired : proxy->recorded(direction).size();
                };
                const auto size = std::min({measure(), measure(), measure()});
                for (std::size_t n = 0; n < size; ++n) {
                    INFO(what << ' ' << way << ", cut after " << n << " of " << size << " bytes "
                              << (direction == Direction::to_server ? "to the server"
                                                                    : "to the client"));
                    const auto cut = [&] { proxy->cut_after(direction, n); };
                    if (what == "acquire") cut();
                    auto lease = acquire();
                    REQUIRE(lease.has_value());  // resolved: found again or tried again
                    REQUIRE(lease->valid());
                    if (what == "renew") {
                        cut();
                        lease->renew();
                        REQUIRE(lease->valid());
                    }
                    if (what == "release") cut();
                    const auto answer = release(*lease);
                    REQUIRE(answer == hf::ReleaseResult::released);
                    // A cut that the exchange did not reach proves nothing. Lengths vary by a few
                    // bytes with the numbers in an answer; further from the end each cut must take
                    // effect.
                    const bool took_effect = proxy->fired();
                    if (n + 8 < size) REQUIRE(took_effect);
                    proxy->heal();
                    const auto seen = watcher.inspect(name);
                    REQUIRE(seen.has_value());
                    REQUIRE(seen->holders.empty());
                    REQUIRE(seen->waiters.empty());
                    positions += took_effect ? 1 : 0;
                }
            }
    std::cout << backend().name() << ": T1 cut at " << positions << " positions\n";
    CHECK(positions > 300);
    require_clean(name);
}

TEST_CASE("T9: an acquire that fails leaves nothing, wherever it is cut off", "[T9]") {
    auto* proxy = proxy_or_none();
    const auto name = fresh_name("cancel");
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto client = proxy == nullptr ? open() : open_proxied();
    const auto lock = lock_of(client, name);
    int cancelled = 0, granted = 0;
    // Cancellation at random moments around the grant, the holder letting go meanwhile.
    for (int i = 0; i < 60; ++i) {
        auto holder = hold(*lock_of(client, name));
        std::stop_source stop;
        hf::result<hf::Lease> got = hf::Lease();
        std::thread waiting([&] { got = lock->acquire({.wait = 5s}, stop.get_token()); });
        const auto pause = std::chrono::microseconds(random() % 3000);
        std::thread releasing([&] { holder.release(); });
        const auto until = now() + pause;
        while (now() < until) {
        }
        stop.request_stop();
        waiting.join();
        releasing.join();
        if (got) {
            ++granted;
            CHECK(got->valid());
            got->release();
        } else {
            ++cancelled;
            CHECK(got.error() == errc::cancelled);
        }
    }
    std::cout << backend().name() << ": T9 seed " << seed << ": " << cancelled << " cancelled, "
              << granted << " granted\n";
    require_clean(name);
    if (proxy == nullptr) return;
    // The answer is swallowed and the caller's wait ends: a grant may be at the server.
    for (int i = 0; i < 8; ++i) {
        const auto fresh = open_proxied("request_timeout=100ms&ttl=20s");
        const auto victim = lock_of(fresh, name);
        // A machine that stalls for as long as this request may last needs more than one.
        lab::wait_until(
            [&] {
                auto lease = victim->acquire({.wait = 5s});
                return lease && lease->release() == hf::ReleaseResult::released;
            },
            20s, "it is connected");
        const auto before = proxy->counters().swallowed_to_client;
        proxy->swallow(Direction::to_client);
        const auto failed = victim->acquire({.wait = 150ms});
        CHECK_FALSE(failed.has_value());
        lab::wait_until([&] { return proxy->counters().swallowed_to_client > before; }, 5s,
                        "the fault to take effect");
        proxy->heal();
        require_clean(name);
    }
}

TEST_CASE("T3: in a black hole lost() comes in time and every wait is bounded", "[T3]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("hole");
    const auto client = open_proxied("ttl=2500ms");
    const auto lock = lock_of(client, name);
    auto lease = hold(*lock);
    const test_support::Stalls stalls;
    std::atomic<long long> late{-100000};
    const auto other = lock_of(client, fresh_name("hole-other"));
    proxy->black_hole();
    const std::stop_callback lost(lease.lost(), [&] { late = ms(now() - lease.valid_until()); });
    const auto start = now();
    const auto failed = other->acquire({.wait = 300ms});
    CHECK_FALSE(failed.has_value());
    CHECK((unreachable(failed.error()) || failed.error() == errc::in_doubt));
    CHECK(ms(now() - start) < 300 + patience * 300 + stalls.of_two());
    lab::wait_until([&] { return late > -100000; }, 10s, "lost() in spite of the hole");
    CHECK(late >= 0);
    CHECK(late < patience * 150 + stalls.of_two());
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(proxy->counters().stalled > 0);  // bytes did arrive and wait
    proxy->heal();
    require_clean(name);
    CHECK(hold(*lock).valid());  // and the same client works again
}

TEST_CASE("T4: a place in line that vanished is taken anew until the deadline", "[T4]") {
    if (backend().proxy() == nullptr) return;
    if (backend().zookeeper() != nullptr) return;  // sessions: a case of its own, in zookeeper.cpp
    const auto name = fresh_name("place");
    auto holder = hold(*lock_of(open(), name, {.ttl = 3s}));
    const auto client = open();
    hf::result<hf::Lease> got = hf::Lease();
    hf::Diagnostics words;
    std::thread waiting(
        [&] { got = lock_of(client, name)->acquire({.wait = 20s, .diagnostics = &words}); });
    lab::wait_until([&] { return client.stats().waiting == 1 && client.stats().attempts >= 1; }, 5s,
                    "it waits");
    // The holder's key and the queue are gone.
    REQUIRE(backend().restart_server(lab::Data::fresh));
    waiting.join();
    INFO((got ? std::string() : got.error().message()) << ' ' << words.text());
    REQUIRE(got.has_value());
    CHECK(got->valid());
    lab::wait_until([&] { return !holder.valid(); }, 10s, "the old holder is told");
    got->release();
    require_clean(name);
}

TEST_CASE("T7: one failed renewal is not a loss", "[T7]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("one-renewal");
    const auto client = open_proxied("ttl=3s");
    auto lease = hold(*lock_of(client, name));
    for (int i = 0; i < 3; ++i) {
        const auto failed = client.stats().renewals_failed;
        const auto fine = client.stats().renewals;
        proxy->refuse();
        proxy->cut_all();
        lab::wait_until([&] { return client.stats().renewals_failed > failed; }, 5s,
                        "a renewal fails");
        CHECK(lease.valid());
        proxy->heal();
        lab::wait_until([&] { return client.stats().renewals > fine; }, 5s, "a renewal succeeds");
        CHECK(lease.state() == hf::LeaseState::held);
    }
    CHECK_FALSE(lease.lost().stop_requested());
    lease.release();
    require_clean(name);
}

TEST_CASE("T8: a dead server neither hangs nor throws where leases and clients end", "[T8]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("dead");
    for (const bool hang : {false, true}) {
        const test_support::Stalls stalls;
        const auto start = now();
        {
            const auto client = open_proxied("ttl=2s");
            auto lease = hold(*lock_of(client, name));
            auto second = hold(*lock_of(client, name + "-2"));
            wait_held_everywhere(name);
            wait_held_everywhere(name + "-2");
            if (hang)
                proxy->black_hole();
            else
                proxy->refuse(), proxy->cut_all();
            CHECK(second.release() == hf::ReleaseResult::unreachable);
        }
        CHECK(ms(now() - start) <
              1000 + 700 + 500 + patience * 500 + stalls.of_two());  // close_grace, request, slack
        proxy->heal();
        auto freed = hold(*lock_of(open(), name), 6s);  // by the ttl
        freed.release();
        require_clean(name);
        lab::wait_until([&] { return open().inspect(name + "-2")->holders.empty(); }, 5s,
                        "the ttl");
    }
}

TEST_CASE("T8: who is granted while another thread closes the client holds nothing", "[T8]") {
    auto* proxy = proxy_or_none();
    if (proxy == nullptr) return;
    const auto name = fresh_name("closing");
    // Elsewhere closing cuts the request, or a node is given up: by its ttl, then.
    const bool at_once = backend().name().starts_with("redis");
    auto client = open_proxied(at_once ? "ttl=60s&request_timeout=10s" : "ttl=3s");
    const auto lock = lock_of(client, name);
    for (int i = 0; i < 3; ++i)
        hold(*lock).release();  // its connections are there
    const auto before = proxy->counters().delayed;
    proxy->delay(Direction::to_client, 30s);
    auto asked = std::async(std::launch::async, [&] { return lock->acquire({.wait = 0ms}); });
    lab::wait_until([&] { return proxy->counters().delayed > before; }, 5s, "the answer waits");
    client.close();
    proxy->heal();  // now it comes
    const auto got = asked.get();
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().message());
    CHECK(
        (got.error() == errc::closed || unreachable(got.error()) || got.error() == errc::in_doubt));
    lab::wait_until([&] { return at_once || open().inspect(name)->holders.empty(); }, 10s,
                    "its ttl");
    require_clean(name);
}

TEST_CASE("T11: a missed wake-up costs at most min(ttl/3, 1 s)", "[T11]") {
    if (backend().proxy() == nullptr) return;
    const auto name = fresh_name("missed");
    const auto holder_client = open();
    for (int i = 0; i < 3; ++i) {
        auto holder = hold(*lock_of(holder_client, name));
        const auto client = open_proxied();
        hf::result<hf::Lease> got = hf::Lease();
        hf::boot_clock::time_point granted;
        std::thread waiting([&] {
            got = lock_of(client, name)->acquire({.wait = 20s});
            granted = now();
        });
        lab::wait_until([&] { return client.stats().attempts >= 1 && client.stats().waiting == 1; },
                        5s, "it waits");
        // Everything to this client is lost from now until after the release.
        backend().proxy()->cut_all();
        const auto released = now();
        holder.release();
        waiting.join();
        REQUIRE(got.has_value());
        CHECK(ms(granted - released) <= 1000 + patience * 500 + stood_still().count());
        got->release();
    }
    require_clean(name);
}

TEST_CASE("T22: what somebody else keeps under the name is never overwritten", "[T22]") {
    const auto name = fresh_name("stranger");
    if (!backend().plant_stranger(name)) {
        CHECK(backend().redis() == nullptr);
        return;
    }
    const auto lock = lock_of(open(), name);
    const auto refused = lock->try_acquire();
    REQUIRE_FALSE(refused.has_value());
    CHECK((refused.error() == errc::kind_mismatch || refused.error() == errc::contended));
    if (backend().redis() == nullptr) {  // still there: a second one cannot be made of it
        CHECK_FALSE(lock->try_acquire().has_value());
        CHECK(backend().erase_behind(name));
        return;
    }
    CHECK(backend().redis()->cli({"LRANGE", name, "0", "-1"}).elements.at(0).text == "not a lock");
    backend().redis()->cli({"DEL", name});
    // a plain key of another client is a holder
    backend().redis()->cli({"SET", name, "somebody"});
    CHECK(lock->try_acquire().error() == errc::contended);
    CHECK(lock->acquire({.wait = 1s}).error() == errc::timed_out);
    CHECK(backend().redis()->cli({"GET", name}).text == "somebody");
    const auto seen = open().inspect(name);
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].foreign);
    backend().redis()->cli({"DEL", name});
    require_clean(name);
}

TEST_CASE("T27: what a Redis server may answer instead", "[T27]") {
    auto* server = backend().redis();
    if (server == nullptr) return;
    const auto name = fresh_name("answers");
    const auto client = open("ttl=4s");
    const auto lock = lock_of(client, name);
    hold(*lock).release();

    SECTION("SCRIPT FLUSH") {
        auto lease = hold(*lock);
        server->cli({"SCRIPT", "FLUSH"});
        CHECK(lease.renew().has_value());
        server->cli({"SCRIPT", "FLUSH"});
        CHECK(lease.release() == hf::ReleaseResult::released);
        server->cli({"SCRIPT", "FLUSH"});
        CHECK(hold(*lock).valid());
    }
    SECTION("READONLY") {
        // Five servers are told one after the other; the lease outlives that on any machine.
        const auto patient = open("ttl=10s");
        auto lease = hold(*lock_of(patient, name));
        server->cli({"REPLICAOF", "127.0.0.1", "1"});
        CHECK(lease.renew().error() == errc::unavailable);
        CHECK(lease.valid());
        const auto refused = lock_of(client, fresh_name("readonly"))->try_acquire();
        REQUIRE_FALSE(refused.has_value());
        CHECK(unreachable(refused.error()));
        server->cli({"REPLICAOF", "NO", "ONE"});
        CHECK(lease.renew().has_value());
        CHECK(lease.release() == hf::ReleaseResult::released);
    }
    SECTION("OOM: nothing is taken, a release still works") {
        auto lease = hold(*lock);
        server->cli({"CONFIG", "SET", "maxmemory", "1"});
        const auto refused = lock_of(client, fresh_name("oom"))->try_acquire();
        REQUIRE_FALSE(refused.has_value());
        CHECK(unreachable(refused.error()));
        const auto answer = lease.release();
        server->cli({"CONFIG", "SET", "maxmemory", "0"});
        CHECK(answer == hf::ReleaseResult::released);
    }
    SECTION("FLUSHALL is a loss at the next renewal") {
        auto lease = hold(*lock);
        const auto token = lease.fencing_token();
        server->cli({"FLUSHALL"});
        lab::wait_until([&] { return lease.lost().stop_requested(); }, 10s, "the loss");
        CHECK(lease.lost_reason() == errc::lost);
        auto next = hold(*lock);
        if (has(Capability::fencing)) CHECK(next.fencing_token() > token);
    }
    SECTION("a restart in between") {
        auto lease = hold(*lock);
        server->restart(lab::Data::keep);
        lab::wait_until([&] { return lease.renew().has_value() || !lease.valid(); }, 5s,
                        "the lease is renewed or told");
        CHECK(lease.valid());
        const auto token = lease.fencing_token();
        CHECK(lease.release() == hf::ReleaseResult::released);
        if (has(Capability::fencing)) CHECK(hold(*lock).fencing_token() > token);
    }
    require_clean(name);
}

TEST_CASE("T15: tokens grow over a killed server", "[T15]") {
    if (backend().proxy() == nullptr || !has(Capability::fencing)) return;
    if (backend().zookeeper() != nullptr) return;  // the same with sessions, in zookeeper.cpp
    const auto name = fresh_name("token-kill");
    const auto client = open("ttl=2s&request_timeout=2s");
    hf::FencingToken last;
    for (int i = 0; i < 3; ++i) {
        auto lease = hold(*lock_of(client, name));
        CHECK(lease.fencing_token() > last);
        last = lease.fencing_token();
        REQUIRE(backend().kill_server());
        lease = {};
        REQUIRE(backend().restart_server(lab::Data::keep));
    }
    // Held, so that there is something to erase.
    auto held = hold(*lock_of(client, name));
    last = held.fencing_token();
    CHECK(backend().erase_behind(name));
    held = {};
    CHECK(hold(*lock_of(client, name)).fencing_token() > last);
    require_clean(name);
}
