// How long a lease is believed in: from before its request was sent, for what the server set, less
// the drift of the clocks.
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/spi/drift.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;
using hf::boot_clock;
using scripted::Server;

namespace {

constexpr hf::milliseconds ttl = 10s;
constexpr auto answer_takes = 300ms;
constexpr auto less = 100ms;  // that a renewal is set for

/// The moments at which the server was last asked.
struct Asked {
    std::mutex mutex;
    boot_clock::time_point attempt, renewal;
    spi::Held held;

    void note(Server& server) {
        server.attempt = [this, then = server.attempt](spi::Attempt& a) {
            const std::lock_guard hold(mutex);
            attempt = boot_clock::now();
            then(a);
        };
        server.renew = [this, then = server.renew](spi::Held& h) {
            const std::lock_guard hold(mutex);
            renewal = boot_clock::now();
            held = h;
            if (then) then(h);
        };
    }
};

/// Between the call and the moment at which the server was asked.
void check_validity(const hf::Lease& lease, boot_clock::time_point before,
                    boot_clock::time_point asked, hf::milliseconds length) {
    const auto counted = length - spi::drift(length);
    CHECK(lease.valid_until() >= before + counted);
    CHECK(lease.valid_until() <= asked + counted);
}

std::shared_ptr<Server> grants_for(hf::milliseconds length) {
    const auto server = std::make_shared<Server>();
    server->attempt = [length](spi::Attempt& a) {
        a.outcome =
            spi::Attempt::Granted{hf::FencingToken{1}, hf::PreviousHolder::none, length, {}};
    };
    server->renew = [length](spi::Held& h) { h.renewed_ttl = length - less; };
    return server;
}

}  // namespace

TEST_CASE("validity counts from before the request, whatever the answer takes", "[core]") {
    const bool lane = GENERATE(false, true), async = GENERATE(false, true);
    INFO((lane ? "lane, " : "engine, ") << (async ? "asynchronous" : "blocking"));
    const auto server = std::make_shared<Server>();
    Asked asked;
    asked.note(*server);
    server->has_lane = lane;
    server->attempt_takes = server->renew_takes = answer_takes;
    const auto client = scripted::open(server, "ttl=10s");
    const auto lock = client.make_lock("x").value();

    const auto before = boot_clock::now();
    auto lease =
        async ? lock->async_acquire({}, boost::asio::use_future).get() : lock->acquire().value();
    REQUIRE(boot_clock::now() >= before + answer_takes);
    check_validity(lease, before, asked.attempt, ttl);

    const auto again = boot_clock::now();
    REQUIRE(lease.renew());
    REQUIRE(boot_clock::now() >= again + answer_takes);
    check_validity(lease, again, asked.renewal, ttl);
}

TEST_CASE("what the server set counts, at the grant and after each renewal", "[core]") {
    const hf::milliseconds length = GENERATE(900ms, 30s);  // asked for: 10 s
    INFO(length.count() << " ms");
    const auto server = grants_for(length);
    Asked asked;
    asked.note(*server);
    const auto client = scripted::open(server, "ttl=10s");
    const auto lock = client.make_lock("x").value();
    auto before = boot_clock::now();
    auto lease = lock->acquire().value();
    check_validity(lease, before, asked.attempt, length);
    before = boot_clock::now();
    REQUIRE(lease.renew());
    {
        const std::lock_guard hold(asked.mutex);
        check_validity(lease, before, asked.renewal, length - less);
        CHECK(asked.held.ttl == ttl);
    }
    REQUIRE(lease.renew());
    if (length > ttl) return;
    // Renewed at a third of it, and so kept.
    const int so_far = server->renewals;
    holdfast::lab::wait_until([&] { return server->renewals >= so_far + 3; }, 10s, "renewals");
    CHECK(boot_clock::now() - before < 3s);
    CHECK(lease.state() == hf::LeaseState::held);
}

TEST_CASE("a fixed lease that was granted for less is extended to its ttl", "[core]") {
    const auto server = grants_for(3s);
    server->renew = nullptr;  // for what is asked
    const auto client = scripted::open(server, "ttl=20s");
    const auto lease = client.make_lock("x", {.renew = false}).value()->acquire().value();
    const auto short_one = lease.valid_until();
    holdfast::lab::wait_until([&] { return lease.valid_until() > short_one + 15s; }, 5s,
                              "extended");
    CHECK(server->renewals == 1);
    CHECK(lease.state() == hf::LeaseState::held);
}

TEST_CASE("what may still be kept is given back for as long as the server keeps it", "[core]") {
    const auto server = grants_for(1200ms);  // asked for: 200 ms
    const auto client = scripted::open(server, "ttl=200ms&request_timeout=50ms");
    const auto lock = client.make_lock("x").value();
    REQUIRE(lock->acquire().value().release() == hf::ReleaseResult::released);

    SECTION("a withdrawal") {
        server->attempt = [](spi::Attempt& a) {
            a.outcome = spi::Attempt::NoAnswer{hf::make_error_code(hf::errc::unavailable)};
        };
        server->withdraw = [](const spi::Attempt&) {
            return hf::make_error_code(hf::errc::unavailable);
        };
        const auto before = boot_clock::now();
        CHECK_FALSE(lock->acquire({.wait = 100ms}).has_value());
        int seen = 0;
        const bool until_then = holdfast::lab::reached(
            [&] {
                seen = server->withdrawals;
                return boot_clock::now() > before + 1s;
            },
            5s);
        CHECK(until_then);
        holdfast::lab::wait_until([&] { return server->withdrawals > seen; }, 2s, "one more");
    }
    SECTION("a release after a renewal, which alone was for longer") {
        server->attempt = Server::grants;
        server->release = [](spi::Held& h) { h.released = hf::ReleaseResult::unreachable; };
        auto lease = lock->acquire().value();
        REQUIRE(lease.renew());
        const auto before = boot_clock::now();
        CHECK(lease.release() == hf::ReleaseResult::unreachable);
        holdfast::lab::wait_until([&] { return boot_clock::now() > before + 900ms; }, 5s, "time");
        const int seen = server->releases;
        holdfast::lab::wait_until([&] { return server->releases > seen; }, 2s, "one more");
    }
    SECTION("a release") {
        server->release = [](spi::Held& h) { h.released = hf::ReleaseResult::unreachable; };
        auto lease = lock->acquire().value();
        const auto before = boot_clock::now();
        CHECK(lease.release() == hf::ReleaseResult::unreachable);
        holdfast::lab::wait_until([&] { return boot_clock::now() > before + 1s; }, 5s, "a second");
        const int seen = server->releases;
        holdfast::lab::wait_until([&] { return server->releases > seen; }, 2s, "one more");
    }
}

TEST_CASE(
    "a renewal whose answer is read after the validity's end changes nothing, whatever it says",
    "[core]") {
    const bool asked = GENERATE(false, true), broken = GENERATE(false, true);
    INFO((asked ? "state() is asked meanwhile" : "nobody looks")
         << (broken ? ", and the lease was broken" : ""));
    const auto server = std::make_shared<Server>();
    std::atomic<boot_clock::time_point> end{boot_clock::time_point::max()};
    // As in a process that stood still: the answer lies there, and nobody reads it.
    server->renew = [&](spi::Held& h) {
        holdfast::lab::wait_until([&] { return boot_clock::now() - 50ms > end.load(); }, 30s,
                                  "the validity has ended");
        if (!broken) return;
        h.renewal = spi::Held::Renewal::lost;
        h.renewal_error = make_error_code(hf::errc::revoked);
    };
    std::optional<hf::Lease> lease;
    const auto client = scripted::open(server, "ttl=300ms");
    lease = client.make_lock("x").value()->acquire().value();
    end = lease->valid_until();
    const auto lost = lease->lost();
    if (asked) {
        holdfast::lab::wait_until([&] { return !lease->valid(); }, 10s, "it says that it is lost");
        CHECK(lease->lost_reason() == hf::errc::lost);
    }
    holdfast::lab::wait_until([&] { return lost.stop_requested(); }, 10s, "lost() is requested");
    CHECK_FALSE(lease->valid());
    CHECK(lease->state() == hf::LeaseState::lost);
    CHECK(lease->lost_reason() == hf::errc::lost);
    CHECK(lease->valid_until() == end.load());
    CHECK(lease->share().error() == hf::errc::lost);
    // Where the server no longer has it there is nothing to release.
    if (!broken)
        holdfast::lab::wait_until([&] { return server->releases == 1; }, 10s, "it is released");
    CHECK(client.stats().losses.expired == 1);
}

TEST_CASE("a release after the validity's end is that of a lost lease, before the engine notices",
          "[core]") {
    const bool lane = GENERATE(false, true);
    INFO((lane ? "lane" : "engine"));
    const auto server = std::make_shared<Server>();
    server->has_lane = lane;
    std::atomic<bool> go{false};
    server->renew = [&](spi::Held&) {
        holdfast::lab::wait_until([&] { return go.load(); }, 30s, "go");
    };
    const auto client = scripted::open(server, "ttl=300ms&request_timeout=10s");
    auto lease = client.make_lock("x").value()->acquire().value();
    const auto lost = lease.lost();
    holdfast::lab::wait_until([&] { return !lease.valid(); }, 10s, "its validity has ended");
    CHECK_FALSE(lost.stop_requested());  // the engine stands still
    std::promise<hf::ReleaseResult> answer;
    lease.async_release([&](hf::error_code, hf::ReleaseResult r) { answer.set_value(r); });
    CHECK(lease.state() == hf::LeaseState::lost);
    holdfast::lab::wait_until([&] { return lost.stop_requested(); }, 10s, "lost() is requested");
    go = true;
    CHECK(answer.get_future().get() == hf::ReleaseResult::already_expired);
    CHECK(lease.lost_reason() == hf::errc::lost);
    CHECK(server->releases == 1);
    CHECK(client.stats().losses.expired == 1);
    CHECK(client.stats().held == 0);
}

TEST_CASE("an unanswered release is repeated for as long as the server may keep the name closed",
          "[core]") {
    const auto server = std::make_shared<Server>();
    server->capabilities = hf::Capabilities{hf::SafetyClass::a,
                                            {hf::Capability::lock_delay, hf::Capability::min_hold}};
    server->release = [](spi::Held& h) { h.released = hf::ReleaseResult::unreachable; };
    const auto client = scripted::open(server, "ttl=200ms&request_timeout=50ms");
    hf::LockOptions options;
    SECTION("lock_delay") {
        options.lock_delay = 1500ms;
    }
    SECTION("lock_delay, of a lost lease") {
        options = {.renew = false, .lock_delay = 1500ms};
    }
    SECTION("min_hold") {
        options.min_hold = 1500ms;
    }
    auto lease = client.make_lock("x", options).value()->acquire().value();
    const auto granted = boot_clock::now();
    if (!options.renew) {
        const auto lost = lease.lost();
        holdfast::lab::wait_until([&] { return lost.stop_requested(); }, 10s, "it is lost");
    }
    CHECK(lease.release() == hf::ReleaseResult::unreachable);
    CHECK(lease.last_error().code == hf::errc::unavailable);
    holdfast::lab::wait_until([&] { return boot_clock::now() > granted + 900ms; }, 5s, "time");
    const int seen = server->releases;
    holdfast::lab::wait_until([&] { return server->releases > seen; }, 5s, "one more");
}

TEST_CASE("a lease that was lost while the server was away is released when the server is back",
          "[core]") {
    const auto server = std::make_shared<Server>();
    std::atomic<bool> away{true};
    server->renew = [](spi::Held& h) { h.renewal = spi::Held::Renewal::unknown; };
    server->release = [&](spi::Held& h) {
        if (away) h.released = hf::ReleaseResult::unreachable;
    };
    const auto client = scripted::open(server, "ttl=1s&request_timeout=100ms");
    auto lease = client.make_lock("x").value()->acquire().value();
    const auto lost = lease.lost();
    holdfast::lab::wait_until([&] { return lost.stop_requested(); }, 10s, "it is lost");
    // The last renewal may have been executed, so the server may keep it for a ttl from there.
    holdfast::lab::wait_until([&] { return server->releases >= 3; }, 10s, "it is repeated");
    away = false;
    const int seen = server->releases;
    holdfast::lab::wait_until([&] { return server->releases > seen; }, 10s, "one more");
    const int last = server->releases;
    CHECK(holdfast::lab::stays_true([&] { return server->releases == last; }, 200ms));
}
