// When an observer of an election asks the server: notified, or polling.
#include <boost/asio/use_future.hpp>
#include <future>
#include <vector>

#include "../support/catch.hpp"
#include "../support/trial.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
namespace spi = holdfast::spi;
namespace lab = holdfast::lab;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<scripted::Server> observed_server(bool notifies) {
    auto made = std::make_shared<scripted::Server>();
    made->capabilities.set(hf::Capability::inspect);
    made->capabilities.set(hf::Capability::watch, notifies);
    return made;
}

spi::Survey led_by(const std::string& owner, hf::milliseconds left = 1h) {
    hf::Holder holder;
    holder.owner = owner;
    holder.ttl_left = left;
    spi::Survey found;
    found.holders.push_back({std::move(holder)});
    return found;
}

hf::Leader leader_called(const std::string& owner) {
    return {.value = {}, .host = {}, .owner = owner, .token = {}};
}

}  // namespace

TEST_CASE("an observer that is notified does not poll", "[election]") {
    const auto notifies = observed_server(true), silent = observed_server(false);
    const auto told = scripted::open(notifies, "ttl=1h"), polls = scripted::open(silent, "ttl=1h");
    const auto a = told.make_election("e").value(), b = polls.make_election("e").value();
    CHECK(a.observe({}, 400ms).error() == hf::errc::timed_out);
    // The first look, and the last one when the wait ends.
    CHECK(notifies->surveys == 2);
    CHECK(notifies->watches == 0);
    CHECK(b.observe({}, 400ms).error() == hf::errc::timed_out);
    CHECK(silent->surveys >= 4);
}

TEST_CASE("a change is looked at once, and one that comes during a look is not missed",
          "[election]") {
    const auto notifies = observed_server(true);
    std::atomic<int> term{0};
    notifies->survey = [&] {
        const int now = term;
        // It changes as soon as this answer is made.
        if (now == 1) {
            term = 2;
            notifies->events.load()->changed("e");
        }
        return now == 0 ? spi::Survey() : led_by("term" + std::to_string(now));
    };
    const auto client = scripted::open(notifies, "ttl=1h");
    const auto one = client.make_election("e").value();
    std::vector<std::future<std::optional<hf::Leader>>> waiting;
    for (int i = 0; i < 3; ++i)
        waiting.push_back(one.async_observe({}, 1h, asio::use_future));
    lab::wait_until([&] { return notifies->surveys == 3; }, 10s, "each has looked");
    CHECK(notifies->watches == 1);
    notifies->events.load()->changed("another name");
    term = 3;
    notifies->events.load()->changed("e");
    for (auto& each : waiting)
        CHECK(each.get()->owner == "term3");
    CHECK(notifies->surveys == 6);
    term = 1;
    CHECK(one.observe(leader_called("term1"), 1h).value()->owner == "term2");
    lab::wait_until([&] { return notifies->watches == 0; }, 10s, "the watch has ended");
}

TEST_CASE("an observer that is notified looks when the lease ends, and once in a ttl",
          "[election]") {
    auto& trial = test_support::this_trial();
    const auto notifies = observed_server(true);
    std::atomic<bool> led{true};
    notifies->survey = [&] { return led ? led_by("one", 300ms) : spi::Survey(); };
    const auto client = scripted::open(notifies, "ttl=1h");
    const auto one = client.make_election("e").value();
    auto next = one.async_observe(leader_called("one"), 1h, asio::use_future);
    lab::wait_until([&] { return notifies->surveys == 1; }, 10s, "it has looked");
    led = false;
    const auto start = hf::boot_clock::now();
    CHECK_FALSE(next.get().has_value());
    trial.within(hf::boot_clock::now() - start, 800ms, "the end of a lease of 300 ms is observed");

    const auto brief = scripted::open(notifies, "ttl=200ms&request_timeout=50ms");
    auto changed = brief.make_election("e").value().async_observe({}, 1h, asio::use_future);
    const int before = notifies->surveys;
    lab::wait_until([&] { return notifies->surveys > before; }, 10s, "it has looked");
    led = true;  // and nobody says so
    CHECK(changed.get()->owner == "one");
}

TEST_CASE("observers look at the server that serves from now on", "[election]") {
    const auto notifies = observed_server(true);
    std::atomic<bool> led{false};
    notifies->survey = [&] { return led ? led_by("one") : spi::Survey(); };
    const auto client = scripted::open(notifies, "ttl=1h");
    auto next = client.make_election("e").value().async_observe({}, 1h, asio::use_future);
    lab::wait_until([&] { return notifies->surveys == 1; }, 10s, "it has looked");
    led = true;
    notifies->events.load()->moved("10.0.0.1", "10.0.0.2");
    CHECK(next.get()->owner == "one");
}
