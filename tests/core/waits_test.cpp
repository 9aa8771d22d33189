// The one wait loop, against answers that come late, never, or too many at a time.
#include <boost/asio/bind_executor.hpp>
#include <ctime>
#include <future>
#include <thread>

#include "acquisition.hpp"
#include "catch.hpp"
#include "engine.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "scripted.hpp"
#include "trial.hpp"

namespace hf = holdfast;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;
using hf::boot_clock;
using hf::errc;
using holdfast::lab::stays_true;
using holdfast::lab::wait_until;
using scripted::Server;

namespace {

hf::error_code unavailable() {
    return hf::make_error_code(errc::unavailable);
}

/// Asks for so many names at once; how often each error came, once all have been told.
class Crowd {
public:
    Crowd(const hf::Client& client, int count) : count_(count) {
        for (int i = 0; i < count; ++i)
            client.make_lock("n/" + std::to_string(i))
                .value()
                ->async_acquire({.wait = 60s}, [this](hf::error_code ec, hf::Lease lease) {
                    const std::lock_guard hold(mutex_);
                    if (!ec && lease.valid()) ++granted_;
                    if (ec == errc::in_doubt) ++in_doubt_;
                    if (ec == errc::unavailable) ++unavailable_;
                    leases_.push_back(std::move(lease));
                });
    }
    void wait(std::chrono::milliseconds cap) {
        wait_until([&] { return told() == count_; }, cap, "all are told");
    }
    int told() const {
        const std::lock_guard hold(mutex_);
        return static_cast<int>(leases_.size());
    }
    int granted() const { return granted_; }
    int in_doubt() const { return in_doubt_; }
    int unavailable() const { return unavailable_; }

private:
    const int count_;
    mutable std::mutex mutex_;
    int granted_ = 0, in_doubt_ = 0, unavailable_ = 0;
    std::vector<hf::Lease> leases_;
};

}  // namespace

// The engine was busy, so the cancellation came there before the waiter did. What is withdrawn and
// has to be repeated belongs to the engine from the first time on.
TEST_CASE("a wait cancelled before it has begun is withdrawn until that is answered", "[core]") {
    const auto server = std::make_shared<Server>();
    server->withdraw = [&](const spi::Attempt&) {
        return server->withdrawals < 3 ? unavailable() : hf::error_code();
    };
    hf::Diagnostics words;
    auto resolved = hf::resolve("scripted:", {}, scripted::registry(server), words).value();
    auto engine = hf::Engine::start(std::move(resolved), {}, words).value();
    const auto handle = std::make_shared<hf::Client::Impl>(engine, 1000ms);
    const auto info = std::make_shared<hf::LockInfo>();
    info->name = "x";
    info->set_ttl(5s);
    info->request_timeout = 1s;
    const auto latch = std::make_shared<hf::OneShot<hf::Acquisition::SyncResult>>();
    auto waiter = std::make_shared<hf::Acquisition>(engine, handle, info, "0123456789.owner",
                                                    hf::spi::Units(), 10s, boot_clock::now(),
                                                    hf::Acquisition::Caller{{}, latch, nullptr});
    spi::Attempt in_doubt;
    in_doubt.outcome = spi::Attempt::NoAnswer{unavailable()};
    in_doubt.sent = boot_clock::now();
    in_doubt.deadline = in_doubt.sent + 1s;
    waiter->adopt(in_doubt);
    engine->post([waiter] { waiter->cancel(hf::make_error_code(errc::cancelled)); });
    engine->submit(waiter);
    const std::weak_ptr<hf::Acquisition> seen = waiter;
    waiter.reset();
    CHECK(latch->take().first == errc::cancelled);
    wait_until([&] { return server->withdrawals == 3; }, 5s, "withdrawn");
    wait_until([&] { return seen.expired(); }, 5s, "forgotten");
    CHECK(server->attempts == 0);
}

TEST_CASE("one attempt ends, also where grants come later than their ttl", "[core]") {
    const auto server = std::make_shared<Server>();
    server->has_lane = GENERATE(false, true);
    server->attempt_takes = 150ms;
    auto client = scripted::open(server, "ttl=100ms&request_timeout=400ms");
    const auto lock = client.make_lock("x").value();
    auto asked = std::async(std::launch::async, [&] { return lock->try_acquire(); });
    const bool ended = asked.wait_for(10s) == std::future_status::ready;
    CHECK(ended);
    if (!ended) client.close();
    const auto got = asked.get();
    REQUIRE_FALSE(got.has_value());
    CHECK((got.error() == errc::in_doubt || got.error() == errc::unavailable));
    wait_until([&] { return server->withdrawals > 0; }, 5s, "given back");
}

TEST_CASE("what a request was refused with is told, though the last one had no time for an answer",
          "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt = [&](spi::Attempt& a) {
        const bool first = server->attempts == 1;
        if (!first) wait_until([&] { return boot_clock::now() >= a.deadline; }, 10s, "too late");
        a.outcome = spi::Attempt::Failed{hf::make_error_code(errc::unavailable)};
        a.detail = first ? "it is a standby" : "no answer in time";
    };
    auto client = scripted::open(server, "ttl=5s&request_timeout=500ms");
    hf::Diagnostics words;
    const auto got = client.make_lock("x").value()->acquire({.wait = 0ms, .diagnostics = &words});
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error() == errc::unavailable);
    CHECK(server->attempts == 2);
    CHECK(words.text().find("it is a standby") != std::string::npos);
}

// The one that has more time was asked for first, and in the same turn of the engine.
TEST_CASE("one attempt ends in its own time, whatever shares its request", "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt_takes = 60s;
    std::atomic<bool> both_asked{false};
    std::atomic<boot_clock::rep> long_told{0}, short_told{0};
    server->attempt = [&](spi::Attempt& a) {
        Server::grants(a);
        if (a.name == "first")
            wait_until([&] { return both_asked.load(); }, 10s, "both are asked for");
    };
    auto client = scripted::open(server, {});
    const auto lock = [&](const char* name, std::chrono::milliseconds ttl) {
        return client.make_lock(name, {.ttl = ttl}).value();
    };
    const auto tells = [](std::atomic<boot_clock::rep>& when) {
        return [&when](hf::error_code, hf::Lease) {
            when = boot_clock::now().time_since_epoch().count();
        };
    };
    std::atomic<boot_clock::rep> first_told{0};
    const auto first = lock("first", 60s), longer = lock("longer", 60s), other = lock("x", 100ms);
    first->async_acquire({.wait = 0ms}, tells(first_told));
    wait_until([&] { return server->attempts > 0; }, 10s, "the engine is busy");
    const auto begun = boot_clock::now().time_since_epoch().count();
    longer->async_acquire({.wait = 0ms}, tells(long_told));
    other->async_acquire({.wait = 0ms}, tells(short_told));
    both_asked = true;
    wait_until([&] { return short_told > 0 && long_told > 0 && first_told > 0; }, 20s, "all told");
    CHECK(short_told - begun < (long_told - begun) / 2);
}

TEST_CASE("an attempt that found it busy withdraws an earlier one that was not answered",
          "[core]") {
    const auto server = std::make_shared<Server>();
    server->has_lane = GENERATE(false, true);
    server->attempt = [&](spi::Attempt& a) {
        if (server->attempts == 1)
            a.outcome = spi::Attempt::NoAnswer{unavailable()};
        else
            a.outcome = spi::Attempt::Busy{1s, false};
    };
    const auto client = scripted::open(server);
    CHECK(client.make_lock("x").value()->try_acquire().error() == errc::contended);
    wait_until([&] { return server->withdrawals == 1; }, 5s, "withdrawn");
}

// Who closes waits for it, within the grace; without that time the ttl has to free it.
TEST_CASE("what is in doubt when the client is closed is withdrawn within its grace", "[core]") {
    const auto server = std::make_shared<Server>();
    server->has_lane = GENERATE(false, true);
    server->attempt_takes = 300ms;
    server->attempt = [](spi::Attempt& a) { a.outcome = spi::Attempt::NoAnswer{unavailable()}; };
    auto client = scripted::open(server, "ttl=60s&request_timeout=400ms");
    const auto lock = client.make_lock("x").value();
    auto asked = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    wait_until([&] { return server->attempts > 0; }, 5s, "asked");
    client.close();  // grace: 1 s
    CHECK(server->withdrawals == 1);
    const auto got = asked.get();
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error() == errc::closed);
}

TEST_CASE("what waits in the client for its turn is not in doubt", "[core]") {
    const auto server = std::make_shared<Server>();
    server->in_turn = 250us;  // all of them: 2.5 times the time of one request
    const auto client = scripted::open(server, "ttl=60s&request_timeout=600ms");
    constexpr int count = 6'000;
    Crowd crowd(client, count);
    crowd.wait(60s);
    CHECK(crowd.granted() == count);
    CHECK(crowd.in_doubt() == 0);
    CHECK(server->attempts == count);
    CHECK(server->most_under_way <= 1024);
}

TEST_CASE("a server that answers nothing fails them all in the time of one request", "[core]") {
    test_support::Trial& trial = test_support::this_trial();
    const auto server = std::make_shared<Server>();
    server->attempt_takes = 10s;
    const auto client = scripted::open(server, "ttl=60s&request_timeout=300ms");
    constexpr int count = 3'000;
    const auto before = boot_clock::now();
    Crowd crowd(client, count);
    const auto asked = boot_clock::now() - before;
    crowd.wait(10s);
    CHECK(crowd.in_doubt() + crowd.unavailable() == count);
    CHECK(crowd.unavailable() > 0);  // never sent
    const auto bound = std::chrono::floor<hf::milliseconds>(2 * (300ms + asked) + 500ms);
    trial.within(boot_clock::now() - before, bound, "the failure of all");
    // 1024 are under way at a time, each for 300 ms; the last is sent within 300 ms of its call.
    CHECK(server->attempts <= 1024 * (2 + asked / 300ms));
}

TEST_CASE("closing a client in which many wait for their turn leaves nothing behind", "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt_takes = 10s;
    const auto kept = std::make_shared<int>();
    std::atomic<int> told{0};
    {
        auto client = scripted::open(server, "ttl=60s&request_timeout=5s", 50ms);
        for (int i = 0; i < 3'000; ++i)
            client.make_lock("n/" + std::to_string(i))
                .value()
                ->async_acquire({.wait = 60s},
                                [&told, kept](hf::error_code, hf::Lease) { ++told; });
        wait_until([&] { return server->attempts >= 1000; }, 10s, "some are under way");
    }
    wait_until([&] { return told == 3'000; }, 10s, "all are told");
    wait_until([&] { return kept.use_count() == 1; }, 10s, "all are gone");
    wait_until([&] { return server->events == nullptr; }, 10s, "the backend is gone");
}

TEST_CASE("more withdrawals than may be under way are all sent", "[core]") {
    constexpr int count = 3'000;
    const auto server = std::make_shared<Server>();
    boot_clock::time_point due;
    server->attempt = [&](spi::Attempt& a) {
        // The engine stands still here until all are due, so that they end in one turn.
        if (a.name == "last")
            wait_until([&] { return boot_clock::now() >= due; }, 30s, "all are due");
        a.outcome = spi::Attempt::Busy{60s, false};
    };
    const auto client = scripted::open(server, "ttl=60s");
    std::atomic<int> told{0};
    const auto ask = [&](const std::string& name) {
        client.make_lock(name).value()->async_acquire({.wait = 2s},
                                                      [&](hf::error_code, hf::Lease) { ++told; });
    };
    for (int i = 0; i < count; ++i)
        ask("n/" + std::to_string(i));
    wait_until([&] { return server->attempts == count; }, 30s, "they wait");
    due = boot_clock::now() + 2s;
    ask("last");
    wait_until([&] { return told == count + 1; }, 30s, "all are told");
    wait_until([&] { return server->withdrawals == count + 1; }, 30s, "all are withdrawn");
    const auto used = std::clock();
    CHECK(stays_true([&] { return server->withdrawals == count + 1; }, 300ms));
    CHECK(std::clock() - used < CLOCKS_PER_SEC / 10);  // nothing is left to do
}

TEST_CASE("an outcome that names no error is one", "[core]") {
    const auto server = std::make_shared<Server>();
    server->has_lane = GENERATE(false, true);
    const bool known = GENERATE(false, true);
    server->attempt = [known](spi::Attempt& a) {
        if (known)
            a.outcome = spi::Attempt::Failed{};
        else
            a.outcome = spi::Attempt::NoAnswer{};
    };
    const auto client = scripted::open(server, "ttl=60s&request_timeout=200ms");
    const auto got = client.make_lock("x").value()->try_acquire();
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error() == (known ? errc::unavailable : errc::in_doubt));
}

// The second attempt that fails is followed by a pause, of at least ten seconds here.
TEST_CASE("a wake-up during an attempt that fails is not dropped", "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt = [&](spi::Attempt& a) {
        const int n = server->attempts;
        if (n == 1) a.outcome = spi::Attempt::Busy{1ms, false};
        if (n == 2 || n == 3) a.outcome = spi::Attempt::NoAnswer{unavailable()};
        if (n == 3) server->events.load()->wake(a.owner);
        if (n > 3) Server::grants(a);
    };
    const auto client = scripted::open(server, "ttl=60s&backoff_min=40s&backoff_max=60s");
    const auto lock = client.make_lock("x").value();
    auto asked = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    CHECK(asked.wait_for(5s) == std::future_status::ready);
    if (server->attempts < 4) FAIL("it waits for the pause to end");
    CHECK(asked.get().has_value());
}

TEST_CASE("wake-ups by a server that does not answer do not keep the engine busy", "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt = [&](spi::Attempt& a) {
        a.outcome = spi::Attempt::Busy{1ms, false};
        if (server->attempts == 1) return;
        a.outcome = spi::Attempt::NoAnswer{unavailable()};
        server->events.load()->wake(a.owner);
    };
    const auto client = scripted::open(server, "ttl=60s&backoff_min=400ms&backoff_max=400ms");
    const auto lock = client.make_lock("x").value();
    const auto got = lock->acquire({.wait = 1s});
    CHECK_FALSE(got.has_value());
    CHECK(server->attempts >= 3);
    CHECK(server->attempts <= 15);  // a pause lasts at least 100 ms
}

TEST_CASE("after a move every lease is renewed, and every waiter attempts again, at once",
          "[core]") {
    const auto server = std::make_shared<Server>();
    std::atomic<bool> moved{false};
    server->attempt = [&](spi::Attempt& a) {
        if (a.name == "busy" && !moved)
            a.outcome = spi::Attempt::Busy{60s, false};
        else
            Server::grants(a);
    };
    server->renew = [&](spi::Held& h) {
        h.renewal = h.name == "kept" ? spi::Held::Renewal::renewed : spi::Held::Renewal::lost;
        h.renewal_error = make_error_code(errc::lost);
    };
    scripted::Heard heard;
    using Seen = hf::Event::Kind;
    const auto client = scripted::open(server, "ttl=60s", 1000ms, heard.sink());
    const auto kept = client.make_lock("kept").value()->acquire().value();
    const auto gone = client.make_lock("gone").value()->acquire().value();
    const auto lock = client.make_lock("busy").value();
    auto asked = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    wait_until([&] { return server->attempts == 3; }, 10s, "it waits");
    CHECK(server->renewals == 0);

    moved = true;
    server->events.load()->moved("a:1", "b:1");
    CHECK(asked.wait_for(10s) == std::future_status::ready);
    CHECK(asked.get().has_value());
    wait_until([&] { return !gone.valid(); }, 10s, "a lease that the new server does not know");
    wait_until([&] { return client.stats().renewals == 1; }, 10s, "the other");
    CHECK(kept.valid());
    wait_until([&] { return !heard.of(Seen::moved).empty(); }, 10s, "the event");
    CHECK(heard.of(Seen::moved).front().text == "from a:1 to b:1");
    server->events.load()->moved("b:1", "a:1");
    server->events.load()->moved("a:1", "b:1");
    wait_until([&] { return heard.of(Seen::moved).size() == 3; }, 10s, "each is reported");
    CHECK(client.stats().moves == 3);
}

TEST_CASE("a renewal that was under way at a move is followed by another one at once", "[core]") {
    const auto server = std::make_shared<Server>();
    server->renew_takes = 50ms;
    server->renew = [&](spi::Held&) {
        if (server->renewals == 1) server->events.load()->moved("a:1", "b:1");
    };
    const auto client = scripted::open(server, "ttl=60s");
    auto lease = client.make_lock("x").value()->acquire().value();
    CHECK(lease.renew().has_value());
    wait_until([&] { return server->renewals == 2; }, 10s, "the next one is not due for 20 s");
    wait_until([&] { return client.stats().renewals == 2; }, 10s, "it is answered");
    CHECK(stays_true([&] { return server->renewals == 2; }, 300ms));
    CHECK(lease.valid());
}

TEST_CASE("what is still to be given back is asked of the next server at once", "[core]") {
    const auto server = std::make_shared<Server>();
    std::atomic<bool> moved{false};
    const auto client =
        scripted::open(server, "ttl=100s&request_timeout=100ms&backoff_min=20s&backoff_max=60s");
    const auto move = [&] {
        moved = true;
        server->events.load()->moved("a:1", "b:1");
    };
    const auto lock = client.make_lock("a").value();
    SECTION("a release") {
        server->release = [&](spi::Held& h) {
            h.released = moved ? hf::ReleaseResult::released : hf::ReleaseResult::unreachable;
        };
        auto lease = lock->acquire().value();
        CHECK(lease.release() == hf::ReleaseResult::unreachable);
        wait_until([&] { return server->releases == 2; }, 5s, "tried again, and not for a while");
        move();
        wait_until([&] { return server->releases == 3; }, 3s, "asked of the next one");
    }
    SECTION("an attempt that may have been granted") {
        server->attempt = [](spi::Attempt& a) {
            a.outcome = spi::Attempt::NoAnswer{unavailable()};
        };
        server->withdraw = [&](const spi::Attempt&) {
            return moved ? hf::error_code() : unavailable();
        };
        CHECK_FALSE(lock->acquire({.wait = 0ms}).has_value());
        wait_until([&] { return server->withdrawals > 0; }, 5s, "not withdrawn");
        const int before = server->withdrawals;
        move();
        wait_until([&] { return server->withdrawals > before; }, 3s, "asked of the next one");
    }
}

TEST_CASE("a request that is not answered ends no wait where another server takes over", "[core]") {
    const bool taken_over = GENERATE(true, false);
    const auto server = std::make_shared<Server>();
    server->attempt = [&](spi::Attempt& a) {
        if (server->attempts >= 40) return Server::grants(a);
        a.outcome = spi::Attempt::NoAnswer{unavailable(), taken_over};
    };
    const auto client =
        scripted::open(server, "ttl=60s&request_timeout=50ms&backoff_min=10ms&backoff_max=20ms");
    const auto lease = client.make_lock("x").value()->acquire({.wait = 60s});
    CHECK(lease.has_value() == taken_over);
    if (!taken_over) CHECK(lease.error() == errc::in_doubt);
}

TEST_CASE("a waiter that gets no answer for a request time-out is reported once, and once it does",
          "[core]") {
    enum class Silence : std::uint8_t { no_answer, refused_connection };
    const auto silence = GENERATE(Silence::no_answer, Silence::refused_connection);
    const auto server = std::make_shared<Server>();
    std::atomic<bool> away{false}, free{false};
    std::atomic<int> unheard{0};
    server->attempt = [&](spi::Attempt& a) {
        a.outcome = spi::Attempt::Busy{10ms, false};
        if (free) Server::grants(a);
        if (!away) return;
        ++unheard;
        a.detail = "refused by 10.0.0.1";
        if (silence == Silence::no_answer)
            a.outcome = spi::Attempt::NoAnswer{unavailable()};
        else
            a.outcome = spi::Attempt::Failed{unavailable()};
    };
    scripted::Heard heard;
    using Seen = hf::Event::Kind;
    const auto client =
        scripted::open(server, "ttl=60s&request_timeout=100ms&backoff_min=10ms&backoff_max=20ms",
                       1000ms, heard.sink());
    const auto lock = client.make_lock("x").value();
    auto asked = std::async(std::launch::async, [&] { return lock->acquire({.wait = 60s}); });
    wait_until([&] { return server->attempts >= 2; }, 10s, "it waits");
    CHECK(heard.of(Seen::unreachable).empty());
    for (std::size_t outages : {1U, 2U}) {
        away = true;
        wait_until([&] { return heard.of(Seen::unreachable).size() == outages; }, 10s, "a word");
        CHECK(heard.of(Seen::reachable).size() == outages - 1);
        const auto said = heard.of(Seen::unreachable).back();
        CHECK(said.name == "x");
        CHECK(said.reason == errc::unavailable);
        CHECK(said.text == "refused by 10.0.0.1");
        // No further word of the same outage, also where more than a second apart.
        const int seen = unheard;
        const auto from = boot_clock::now();
        wait_until([&] { return unheard > seen + 5 && boot_clock::now() > from + 1100ms; }, 10s,
                   "more silence");
        CHECK(heard.of(Seen::unreachable).size() == outages);
        free = outages == 2;
        away = false;
        wait_until([&] { return heard.of(Seen::reachable).size() == outages; }, 10s, "an answer");
    }
    CHECK(asked.get().has_value());
}

TEST_CASE(
    "a waiter that misses one answer, or whose server answers that it cannot serve, is not "
    "reported",
    "[core]") {
    const auto server = std::make_shared<Server>();
    const bool alive = GENERATE(false, true);
    server->attempt = [&](spi::Attempt& a) {
        const int n = server->attempts;
        a.outcome = spi::Attempt::Busy{10ms, false};
        if (n > 1 && n < 30 && (alive || n % 2 == 0))
            a.outcome = spi::Attempt::Failed{unavailable(), alive};
        if (n >= 30) Server::grants(a);
    };
    scripted::Heard heard;
    const auto client =
        scripted::open(server, "ttl=60s&request_timeout=30s&backoff_min=1ms&backoff_max=2ms",
                       1000ms, heard.sink());
    CHECK(client.make_lock("x").value()->acquire({.wait = 60s}).has_value());
    CHECK(heard.of(hf::Event::Kind::unreachable).empty());
    CHECK(heard.of(hf::Event::Kind::reachable).empty());
}

TEST_CASE("a caller that waits keeps no lane", "[core]") {
    const auto server = std::make_shared<Server>();
    server->has_lane = true;
    server->attempt = [](spi::Attempt& a) {
        if (a.name == "free")
            Server::grants(a);
        else
            a.outcome = spi::Attempt::Busy{60s, false};
    };
    const auto client = scripted::open(server, "ttl=60s");
    std::stop_source stop;
    std::vector<std::future<bool>> waiters;
    for (int i = 0; i < 8; ++i)
        waiters.push_back(std::async(std::launch::async, [&, i] {
            const auto lock = client.make_lock("held/" + std::to_string(i)).value();
            return lock->acquire({.wait = 60s}, stop.get_token()).has_value();
        }));
    wait_until([&] { return server->attempts == 16; }, 10s, "all wait on the engine");
    CHECK(server->on_lanes == 8);
    CHECK(client.make_lock("free").value()->try_acquire().has_value());
    CHECK(server->on_lanes == 9);
    stop.request_stop();
    for (auto& waiter : waiters)
        CHECK_FALSE(waiter.get());
}

TEST_CASE("a lane that cannot be opened is not needed, and not lost", "[core]") {
    const auto server = std::make_shared<Server>();
    server->has_lane = true;
    server->lanes_refused = 20;  // an acquire and a release want one each
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    for (int i = 0; i < 10; ++i) {
        auto lease = lock->acquire();
        REQUIRE(lease.has_value());
        CHECK(lease->release() == hf::ReleaseResult::released);
    }
    CHECK(server->on_lanes == 0);
    CHECK(lock->acquire().has_value());
    CHECK(server->on_lanes == 1);
}

TEST_CASE("names of different servers are not asked for in one call", "[core]") {
    const auto server = std::make_shared<Server>();
    static const char odd = 0, even = 0;
    server->server_of = [](std::string_view name) { return name.back() % 2 == 0 ? &even : &odd; };
    std::atomic<bool> all_asked{false};
    std::size_t mixed = 0, together = 0;
    server->asked_together = [&](std::span<spi::Attempt* const> items) {
        const auto elsewhere = [&](const spi::Attempt* a) {
            return server->server_of(a->name) != server->server_of(items.front()->name);
        };
        wait_until([&] { return all_asked.load(); }, 10s, "all have asked");
        mixed += std::any_of(items.begin(), items.end(), elsewhere) ? 1 : 0;
        together = std::max(together, items.size());
    };
    {
        const auto client = scripted::open(server);
        Crowd crowd(client, 50);
        all_asked = true;
        crowd.wait(10s);
        CHECK(crowd.granted() == 50);
    }
    CHECK(mixed == 0);
    CHECK(together > 1);
}
