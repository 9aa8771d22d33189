// Every kind of holder, with and without each option of time, through every end that a lease can
// have: all at once, as one client's requests travel together.
#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>

#include "after_break.hpp"
#include "suite.hpp"

using namespace suite;

namespace {

/// A kind of holder, with the options of time.
struct Held {
    std::string words;
    hf::LockOptions options;
    hf::AcquireOptions how;  ///< of the next one as well, which does not fit beside it
    std::string name{};
    hf::boot_clock::time_point since{};
    std::shared_ptr<hf::Lease> lease = std::make_shared<hf::Lease>();

    bool closes_for(hf::milliseconds time) const { return options.min_hold >= time; }
    bool exclusive() const { return how.mode == hf::Mode::exclusive && how.permits == 1; }
};

/// Each kind that the backend has, plain, with the lock_delay and with the min_hold, all held;
/// those that core does not renew are renewed once, and keep the options of time.
std::vector<Held> hold_all(Trial& trial, const hf::Client& client, const hf::LockOptions& common,
                           hf::milliseconds lock_delay, hf::milliseconds min_hold) {
    std::vector<Held> all;
    const auto add = [&](std::string words, hf::LockOptions options,
                         const hf::AcquireOptions& how) {
        options.ttl = common.ttl;
        options.renew = common.renew;
        all.push_back({words, options, how});
        if (has(Capability::lock_delay)) {
            options.lock_delay = lock_delay;
            all.push_back({words + " with lock_delay", options, how});
            options.lock_delay = 0ms;
        }
        if (has(Capability::min_hold)) {
            options.min_hold = min_hold;
            all.push_back({words + " with min_hold", options, how});
        }
    };
    add("a mutex", {}, {});
    if (has(Capability::shared)) {
        add("a writer", {.kind = hf::Kind::shared_mutex}, {});
        add("a reader", {.kind = hf::Kind::shared_mutex}, {.mode = hf::Mode::shared});
    }
    if (has(Capability::semaphore))
        add("permits", {.kind = hf::Kind::semaphore, .limit = 3}, {.permits = 2});
    for (Held& h : all) {
        INFO(h.words);
        h.name = fresh_name("every-kind");
        h.how.wait = 10s;
        h.since = now();
        hf::Diagnostics why;
        h.how.diagnostics = &why;
        auto lease = lock_of(client, h.name, h.options)->acquire(h.how);
        h.how.diagnostics = nullptr;
        INFO((lease ? std::string() : lease.error().message()) << ' ' << why.text());
        REQUIRE(lease.has_value());
        *h.lease = std::move(*lease);
        wait_held_everywhere(*h.lease);
        if (common.renew) continue;
        const auto renewed = h.lease->renew();
        INFO((renewed ? std::string() : renewed.error().message())
             << ' ' << h.lease->last_error().text);
        trial.holds(renewed.has_value(), std::min(*common.ttl / 3, hf::milliseconds(2000)),
                    "a renewal in its time-out");
    }
    return all;
}

/// The next one is granted within `wait`. One that reads asks as a writer, which does not fit
/// beside the reader.
hf::result<hf::Lease> next_of(const hf::Client& client, const Held& h,
                              hf::milliseconds wait = 10s) {
    hf::LockOptions options = h.options;
    options.ttl = 30s;
    options.renew = true;
    options.lock_delay = options.min_hold = 0ms;
    hf::AcquireOptions how = h.how;
    how.mode = hf::Mode::exclusive;
    how.wait = wait;
    return lock_of(client, h.name, options)->acquire(how);
}

void end(hf::result<hf::Lease>& next, const Held& h) {
    REQUIRE(next.has_value());
    CHECK(next->valid());
    CHECK(next->release() == hf::ReleaseResult::released);
    require_clean(h.name);
}

}  // namespace

TEST_CASE("every kind: renewed and released together, a name is free when it may be",
          "[kinds][every]") {
    Trial& trial = this_trial();
    const auto client = open(), other = open();
    auto all = hold_all(trial, client, {.ttl = 2500ms}, 20s, 6s);
    std::vector<hf::boot_clock::time_point> until;
    for (const Held& h : all)
        until.push_back(h.lease->valid_until());
    for (std::size_t i = 0; i < all.size(); ++i) {
        INFO(all[i].words);
        lab::wait_until([&] { return all[i].lease->valid_until() > until[i]; }, 10s, "a renewal");
        CHECK(all[i].lease->valid());
    }
    boost::asio::io_context loop;
    std::vector<hf::ReleaseResult> answers(all.size(), hf::ReleaseResult::unreachable);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i].lease->async_release(boost::asio::bind_executor(
            loop, [&answers, i](hf::error_code, hf::ReleaseResult r) { answers[i] = r; }));
    loop.run();
    for (std::size_t i = 0; i < all.size(); ++i) {
        INFO(all[i].words);
        CHECK(answers[i] == hf::ReleaseResult::released);
        auto next = next_of(other, all[i]);
        const auto held = now() - all[i].since;
        CHECK((!all[i].closes_for(6s) || held >= 6s));
        end(next, all[i]);
    }
}

TEST_CASE("every kind: what is lost is told, and its name closed no longer than it has to be",
          "[kinds][every]") {
    Trial& trial = this_trial();
    const auto client = open(), other = open();
    auto all = hold_all(trial, client, {.ttl = 2s, .renew = false}, 20s, 5s);
    for (Held& h : all) {
        INFO(h.words);
        lab::wait_until([&] { return h.lease->lost().stop_requested(); }, 10s, "it is lost");
        CHECK(h.lease->lost_reason() == errc::lost);
        CHECK_FALSE(h.lease->renew().has_value());
        if (h.options.lock_delay > 0ms) {
            CHECK(next_of(other, h, 0ms).error() == errc::contended);
            CHECK(h.lease->release() != hf::ReleaseResult::released);
        }
        auto next = next_of(other, h);
        const auto held = now() - h.since;
        CHECK((!h.closes_for(5s) || held >= 5s));
        REQUIRE(next.has_value());
        CHECK(h.lease->release() != hf::ReleaseResult::released);
        CHECK(next->renew().has_value());
        end(next, h);
    }
}

TEST_CASE("every kind: broken with `now` it is free at once, and its holder hears why",
          "[kinds][every]") {
    Trial& trial = this_trial();
    const auto client = open(), other = open();
    auto all = hold_all(trial, client, {.ttl = 30s, .renew = false}, 20s, 50s);
    for (Held& h : all) {
        INFO(h.words);
        REQUIRE(other.break_lock(h.name, {.now = true}).has_value());
        auto next = next_of(other, h);
        CHECK_FALSE(h.lease->renew().has_value());
        CHECK(h.lease->lost().stop_requested());
        CHECK(h.lease->lost_reason() == after_break().lost_reason);
        REQUIRE(next.has_value());
        CHECK(next->renew().has_value());
        end(next, h);
    }
}

TEST_CASE("every kind: a client that closes gives back all that it holds", "[kinds][every]") {
    Trial& trial = this_trial();
    auto client = open();
    const auto other = open();
    auto all = hold_all(trial, client, {.ttl = 30s}, 20s, 4s);
    client.close();
    for (Held& h : all) {
        INFO(h.words);
        CHECK(h.lease->lost().stop_requested());
        CHECK(h.lease->lost_reason() == errc::closed);
        auto next = next_of(other, h);
        const auto held = now() - h.since;
        CHECK((!h.closes_for(4s) || held >= 4s));
        REQUIRE(next.has_value());
        if (has(Capability::previous_holder) && h.exclusive())
            CHECK(next->previous_holder() == hf::PreviousHolder::abandoned);
        end(next, h);
    }
}
