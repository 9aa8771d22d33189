// What stands above a Lock: the interfaces of std, and election.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_future.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "catch.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using namespace std::chrono_literals;

namespace {

hf::Client open_family() {
    static std::atomic<int> number{0};
    return hf::Client::open("memory:family" + std::to_string(++number)).value();
}

std::unique_ptr<hf::Lock> made(const hf::Client& c, const hf::LockOptions& o = {}) {
    return c.make_lock("it", o).value();
}

}  // namespace

// --- the interfaces of std

TEST_CASE("std: shared_lock and unique_lock take a shared_mutex", "[std]") {
    const auto client = open_family();
    hf::shared_mutex m(made(client, {.kind = hf::Kind::shared_mutex}));
    hf::shared_mutex other(made(client, {.kind = hf::Kind::shared_mutex}));
    {
        const std::shared_lock reading(m);
        const std::shared_lock beside(other);
        CHECK(m.lease().mode() == hf::Mode::shared);
        CHECK_FALSE(std::unique_lock(other, std::try_to_lock).owns_lock());
        CHECK_FALSE(std::unique_lock(other, 20ms).owns_lock());
    }
    const std::unique_lock writing(m);
    CHECK(m.lease().mode() == hf::Mode::exclusive);
    CHECK_FALSE(std::shared_lock(other, std::try_to_lock).owns_lock());
    CHECK_THROWS(hf::shared_mutex(made(client)));
}

TEST_CASE("std: permits of a counting_semaphore are released by any thread", "[std]") {
    const auto client = open_family();
    hf::counting_semaphore s(made(client, {.kind = hf::Kind::semaphore, .limit = 2}));
    s.acquire();
    CHECK(s.try_acquire());
    CHECK_FALSE(s.try_acquire());
    CHECK_FALSE(s.try_acquire_for(20ms));
    CHECK(s.held() == 2);
    std::thread([&] { s.release(); }).join();
    CHECK(s.held() == 1);
    CHECK_THROWS(s.release(2));
    CHECK(s.held() == 1);
    s.release();
    CHECK_THROWS(s.release());
    CHECK_THROWS(hf::counting_semaphore(made(client)));
}

TEST_CASE("std: an exception makes the release abandoned", "[std]") {
    const auto client = open_family();
    hf::shared_mutex m(made(client, {.kind = hf::Kind::shared_mutex}));
    try {
        const std::unique_lock writing(m);
        throw 1;
    } catch (int) {
    }
    CHECK(made(client)->try_acquire()->previous_holder() == hf::PreviousHolder::abandoned);
}

// --- Election

TEST_CASE("election: one leads, all see its value, and the next term has a higher token",
          "[election]") {
    const auto client = open_family();
    auto one = client.make_election("it").value(), two = client.make_election("it").value();
    CHECK_FALSE(one.leader()->has_value());
    auto term = one.campaign("10.0.0.1:80").value();
    const auto first = one.leader().value();
    REQUIRE(first.has_value());
    CHECK(first->value == "10.0.0.1:80");
    CHECK(two.campaign("10.0.0.2:80", {.wait = 20ms}).error() == errc::timed_out);
    hf::Diagnostics words;
    CHECK(one.campaign("again", {.diagnostics = &words}).error() == errc::would_deadlock);
    CHECK(words.text().find("leads already") != std::string::npos);
    CHECK(two.campaign(std::string(129, 'x')).error() == errc::bad_config);

    std::atomic<bool> leads{false};
    hf::Lease next;
    two.async_campaign("10.0.0.2:80", {}, [&](hf::error_code ec, hf::Lease l) {
        CHECK_FALSE(ec);
        next = std::move(l);
        leads = true;
    });
    CHECK(one.observe(first, 20ms).error() == errc::timed_out);
    std::stop_source stopped;
    stopped.request_stop();
    CHECK(one.observe(first, hf::forever, stopped.get_token()).error() == errc::cancelled);
    CHECK(term.release() == hf::ReleaseResult::released);
    lab::wait_until([&] { return leads.load(); }, 10s, "the other one leads");
    const auto second = one.observe(first, 10s).value();
    REQUIRE(second.has_value());
    CHECK(second->value == "10.0.0.2:80");
    CHECK(second->token > first->token);
    next = {};
    CHECK(one.campaign("10.0.0.1:80", {.wait = 10s}).has_value());
}

TEST_CASE("election: the same value in a term of another owner is another leader", "[election]") {
    const auto client = open_family();
    auto one = client.make_election("it").value();
    auto term = one.campaign("10.0.0.1:80").value();
    const auto first = one.leader().value();
    REQUIRE(first.has_value());
    term.release();
    term = one.campaign("10.0.0.1:80").value();
    const auto second = one.observe(first, 10s).value();
    REQUIRE(second.has_value());
    CHECK(second->value == first->value);
    CHECK(second->owner == term.owner_id());
    CHECK(one.observe(second, 0ms).error() == errc::timed_out);
}

TEST_CASE("election: a campaign that has not begun goes on when its candidate has moved",
          "[election]") {
    const auto client = open_family();
    auto one = client.make_election("it").value();
    auto later = one.async_campaign("v", {}, boost::asio::deferred);
    const auto moved = std::move(one);
    const auto term = std::move(later)(boost::asio::use_future).get();
    CHECK(term.valid());
    CHECK(moved.leader().value()->value == "v");
}

TEST_CASE(
    "election: a campaign that is cancelled, and a term that is lost, leave the candidate free",
    "[election]") {
    const auto client = open_family();
    auto one = client.make_election("it").value(), two = client.make_election("it").value();
    auto term = one.campaign("one").value();
    std::atomic<bool> ended{false};
    boost::asio::cancellation_signal signal;
    two.async_campaign("two", {},
                       boost::asio::bind_cancellation_slot(
                           signal.slot(), [&](hf::error_code ec, const hf::Lease&) {
                               CHECK(ec == errc::cancelled);
                               ended = true;
                           }));
    lab::wait_until([&] { return client.inspect("it")->waiters.size() == 1; }, 10s, "it waits");
    signal.emit(boost::asio::cancellation_type::terminal);
    lab::wait_until([&] { return ended.load(); }, 10s, "it ends");
    std::stop_source stop;
    stop.request_stop();
    CHECK(two.campaign("two", {}, stop.get_token()).error() == errc::cancelled);

    REQUIRE(client.break_lock("it", {.now = true}).has_value());
    CHECK(term.renew().error() == errc::revoked);
    auto next = two.campaign("two", {.wait = 10s}).value();
    CHECK(one.campaign("one", {.wait = 0ms}).error() == errc::would_deadlock);  // it may still act
    term.release();
    CHECK(one.campaign("one", {.wait = 0ms}).error() == errc::contended);
}
