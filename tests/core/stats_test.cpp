// What Stats counts: how long waits, holds and renewals took, and why leases were lost.
#include <boost/asio/use_future.hpp>

#include "catch.hpp"
#include "counters.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;
using hf::boot_clock;
using hf::errc;
using scripted::Server;
using Renewal = spi::Held::Renewal;

namespace {

constexpr auto long_enough = 400ms;

/// How many were lost for each reason, in the order of Stats::Losses.
std::vector<std::uint64_t> losses_of(const hf::Stats& s) {
    return {s.losses.expired,  s.losses.gone,   s.losses.revoked,
            s.losses.max_hold, s.losses.closed, s.losses.other};
}

void answers_renewals(Server& server, Renewal outcome, hf::error_code why) {
    server.renew = [outcome, why](spi::Held& h) {
        h.renewal = outcome;
        h.renewal_error = why;
    };
}

}  // namespace

TEST_CASE("Histogram: a time is in the first bucket whose bound it does not exceed", "[core]") {
    const auto& bounds = hf::Histogram::bounds;
    const std::vector<std::chrono::microseconds> expected{100us, 300us, 1ms,   3ms,   10ms,   30ms,
                                                          100ms, 300ms, 1s,    3s,    10s,    30s,
                                                          100s,  300s,  1000s, 3000s, 10'000s};
    REQUIRE(std::vector<std::chrono::microseconds>(bounds.begin(), bounds.end()) == expected);
    for (std::size_t i = 0; i < bounds.size(); ++i) {
        hf::HistogramCounter counter;
        counter.add(bounds[i]);
        counter.add(bounds[i] + 1ns);
        const hf::Histogram h = counter.snapshot();
        CHECK(h.buckets[i] == 1);
        CHECK(h.buckets[i + 1] == 1);
        CHECK(h.count() == 2);
        CHECK(h.sum == 2 * bounds[i] + 1ns);
    }
    hf::HistogramCounter counter;
    counter.add(-5ns);  // clocks of two threads
    counter.add(0ns);
    CHECK(counter.snapshot().buckets[0] == 2);
    CHECK(counter.snapshot().sum == 0ns);
}

TEST_CASE("Stats: a wait lasts from the call until the grant", "[core]") {
    const bool lane = GENERATE(false, true), async = GENERATE(false, true);
    INFO((lane ? "lane, " : "engine, ") << (async ? "asynchronous" : "blocking"));
    const auto server = std::make_shared<Server>();
    server->has_lane = lane;
    server->attempt_takes = long_enough;
    const auto client = scripted::open(server);
    const auto lock = client.make_lock("x").value();
    const auto before = boot_clock::now();
    const auto lease =
        async ? lock->async_acquire({}, boost::asio::use_future).get() : lock->acquire().value();
    const auto took = boot_clock::now() - before;
    const hf::Stats s = client.stats();
    CHECK(s.acquired == 1);
    CHECK(s.held == 1);
    CHECK(s.wait_time.count() == 1);
    CHECK(s.wait_time.sum >= long_enough);
    CHECK(s.wait_time.sum <= took);
    CHECK(s.wait_time.buckets[7] == 0);  // up to 300 ms
    CHECK(s.hold_time.count() == 0);
}

TEST_CASE("Stats: an acquisition that is not granted is no wait", "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt = [](spi::Attempt& a) { a.outcome = spi::Attempt::Busy{10ms}; };
    const auto client = scripted::open(server);
    const auto lock = client.make_lock("x").value();
    CHECK(lock->acquire({.wait = 0ms}).error() == errc::contended);
    CHECK(lock->acquire({.wait = 50ms}).error() == errc::timed_out);
    CHECK(client.stats().contended == 2);
    CHECK(client.stats().wait_time.count() == 0);
    CHECK(client.stats().acquired == 0);
}

TEST_CASE("Stats: a hold lasts from the grant until the call that releases it", "[core]") {
    enum class End : std::uint8_t { release, async_release, destructor };
    const bool lane = GENERATE(false, true);
    const End end = GENERATE(End::release, End::async_release, End::destructor);
    INFO((lane ? "lane, " : "engine, ") << static_cast<int>(end));
    const auto server = std::make_shared<Server>();
    server->has_lane = lane;
    server->attempt_takes = long_enough;
    server->release_takes = long_enough;
    const auto client = scripted::open(server);
    const auto lock = client.make_lock("x").value();
    const auto before = boot_clock::now();
    std::optional<hf::Lease> lease = lock->acquire().value();
    const auto granted = boot_clock::now();
    holdfast::lab::wait_until([&] { return boot_clock::now() >= granted + 50ms; }, 60s, "a hold");
    if (end == End::async_release) {
        auto answer = lease->async_release(hf::Outcome::done, boost::asio::use_future);
        const auto asked = boot_clock::now();
        CHECK(client.stats().hold_time.sum <= asked - before - long_enough);
        CHECK(answer.get() == hf::ReleaseResult::released);
    } else if (end == End::release) {
        CHECK(lease->release() == hf::ReleaseResult::released);
        CHECK(lease->release() == hf::ReleaseResult::released);
    }
    lease.reset();
    const auto after = boot_clock::now();
    const hf::Stats s = client.stats();
    CHECK(s.held == 0);
    CHECK(s.hold_time.count() == 1);
    CHECK(s.hold_time.sum >= 50ms);
    CHECK(s.hold_time.sum <= after - before - long_enough);
    CHECK(s.lost == 0);
}

TEST_CASE("Stats: a renewal's time is that of its answer", "[core]") {
    const auto server = std::make_shared<Server>();
    server->renew_takes = long_enough;
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    auto lease = lock->acquire().value();
    const auto before = boot_clock::now();
    REQUIRE(lease.renew());
    const auto took = boot_clock::now() - before;
    hf::Stats s = client.stats();
    CHECK(s.renewals == 1);
    CHECK(s.renewal_time.count() == 1);
    CHECK(s.renewal_time.sum >= long_enough);
    CHECK(s.renewal_time.sum <= took);

    answers_renewals(*server, Renewal::unknown, make_error_code(errc::unavailable));
    CHECK_FALSE(lease.renew());
    s = client.stats();
    CHECK(s.renewals_failed == 1);
    CHECK(s.renewal_time.count() == 1);
}

TEST_CASE("Stats: losses by their reason", "[core]") {
    struct Row {
        const char* name;
        std::size_t reason;  ///< its index in losses_of()
        std::function<void(Server&, const hf::Client&, hf::Lease&)> lose;
        errc condition;
        hf::LockOptions options = {};
    };
    const auto renewal = [](Renewal outcome, hf::error_code why) {
        return [=](Server& server, const hf::Client&, hf::Lease& lease) {
            answers_renewals(server, outcome, why);
            (void)lease.renew();
        };
    };
    const auto nothing = [](Server&, const hf::Client&, hf::Lease&) {};
    const hf::error_code native(EIO, boost::system::generic_category());
    const std::vector<Row> rows{
        {"fixed", 0, nothing, errc::lost, {.ttl = 1s, .renew = false}},
        {"unanswered",
         0,
         renewal(Renewal::unknown, make_error_code(errc::unavailable)),
         errc::lost,
         {.ttl = 1s}},
        {"the server does not have it", 1, renewal(Renewal::lost, {}), errc::lost},
        {"the backend reports it", 1,
         [](Server& server, const hf::Client&, hf::Lease& lease) {
             server.events.load()->lost(lease.owner_id(), make_error_code(errc::lost));
         },
         errc::lost},
        {"broken", 2, renewal(Renewal::lost, make_error_code(errc::revoked)), errc::revoked},
        {"max_hold", 3, nothing, errc::lost, {.max_hold = 100ms}},
        {"closed", 4,
         [](Server&, const hf::Client& client, hf::Lease&) { hf::Client(client).close(); },
         errc::closed},
        {"another error", 5, renewal(Renewal::lost, native), errc{}}};
    for (const Row& row : rows) {
        INFO(row.name);
        const auto server = std::make_shared<Server>();
        const auto client = scripted::open(server, "ttl=60s");
        const auto lock = client.make_lock("x", row.options).value();
        auto lease = lock->acquire().value();
        const auto until = lease.valid_until();
        const auto granted = boot_clock::now();
        row.lose(*server, client, lease);
        holdfast::lab::wait_until([&] { return client.stats().lost == 1; }, 20s, "it is lost");
        const hf::Stats s = client.stats();
        std::vector<std::uint64_t> expected(6);
        expected[row.reason] = 1;
        CHECK(losses_of(s) == expected);
        CHECK(s.held == 0);
        CHECK(s.hold_time.count() == 1);
        if (row.condition != errc{})
            CHECK(lease.lost_reason() == row.condition);
        else
            CHECK(lease.lost_reason() == native);
        // Nobody relied on it for longer, however late the loss was noticed.
        if (!row.options.renew) CHECK(s.hold_time.sum <= until - granted + 100ms);
        (void)lease.release();
        CHECK(client.stats().hold_time.count() == 1);
        CHECK(client.stats().lost == 1);
    }
}
