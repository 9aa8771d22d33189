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
    lab::wait_until([&] { return notifies->looks == 3; }, 10s, "each has looked");
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
    lab::wait_until([&] { return notifies->looks == 1; }, 10s, "it has looked");
    led = false;
    const auto start = hf::boot_clock::now();
    CHECK_FALSE(next.get().has_value());
    trial.within(hf::boot_clock::now() - start, 800ms, "the end of a lease of 300 ms is observed");

    const auto brief = scripted::open(notifies, "ttl=200ms&request_timeout=50ms");
    const int before = notifies->looks;
    auto changed = brief.make_election("e").value().async_observe({}, 1h, asio::use_future);
    lab::wait_until([&] { return notifies->looks > before; }, 10s, "it has looked");
    led = true;  // and nobody says so
    CHECK(changed.get()->owner == "one");
}

TEST_CASE("observers look at the server that serves from now on", "[election]") {
    const auto notifies = observed_server(true);
    std::atomic<bool> led{false};
    notifies->survey = [&] { return led ? led_by("one") : spi::Survey(); };
    const auto client = scripted::open(notifies, "ttl=1h");
    auto next = client.make_election("e").value().async_observe({}, 1h, asio::use_future);
    lab::wait_until([&] { return notifies->looks == 1; }, 10s, "it has looked");
    led = true;
    notifies->events.load()->moved("10.0.0.1", "10.0.0.2");
    CHECK(next.get()->owner == "one");
}

TEST_CASE("an observer that has had an answer waits on through an interruption, and says so",
          "[election]") {
    test_support::Heard heard;
    const auto notifies = observed_server(true);
    std::atomic<bool> away{false}, led{false};
    notifies->survey = [&]() -> spi::Answer<spi::Survey> {
        if (away) return spi::Failure(hf::errc::unavailable, "cut off");
        return led ? led_by("one") : spi::Survey();
    };
    const auto client = scripted::open(notifies, "ttl=1h&request_timeout=200ms", 10s, heard.sink());
    const auto election = client.make_election("e").value();
    auto next = election.async_observe({}, 1h, asio::use_future);
    lab::wait_until([&] { return notifies->looks == 1; }, 10s, "it has looked");
    away = true;
    notifies->events.load()->changed("e");
    lab::wait_until([&] { return !heard.of(hf::Event::Kind::unreachable).empty(); }, 10s,
                    "the operator is told");
    CHECK(heard.of(hf::Event::Kind::unreachable).front().name == "e");
    CHECK(heard.of(hf::Event::Kind::unreachable).front().text == "cut off");
    led = true;
    away = false;
    // Nobody reports a change: it looks again by itself.
    CHECK(next.get()->owner == "one");
    lab::wait_until([&] { return !heard.of(hf::Event::Kind::reachable).empty(); }, 10s,
                    "and that it is over");
    CHECK(heard.of(hf::Event::Kind::unreachable).size() == 1);
}

TEST_CASE("an observer retries with pauses that grow, and ends at its own deadline", "[election]") {
    const auto notifies = observed_server(true);
    std::atomic<bool> away{false};
    notifies->survey = [&]() -> spi::Answer<spi::Survey> {
        // Each time it is asked it reports a change, and never answers.
        if (away) {
            notifies->events.load()->changed("e");
            return spi::Failure(hf::errc::unavailable);
        }
        return spi::Survey();
    };
    const auto client = scripted::open(notifies, "ttl=1h&request_timeout=200ms");
    const auto election = client.make_election("e").value();
    auto next = election.async_observe({}, 2s, asio::use_future);
    lab::wait_until([&] { return notifies->looks == 1; }, 10s, "it has looked");
    away = true;
    const auto begun = hf::boot_clock::now();
    notifies->events.load()->changed("e");
    try {
        (void)next.get();
        FAIL("nobody leads");
    } catch (const boost::system::system_error& e) {
        CHECK(e.code() == hf::errc::unavailable);
    }
    // The last pause would not end in time: it is a second at most.
    CHECK(hf::boot_clock::now() - begun > 500ms);
    CHECK(notifies->surveys > 4);
    CHECK(notifies->surveys < 40);
}

TEST_CASE("an observer that is never answered ends after one request time-out", "[election]") {
    auto& trial = test_support::this_trial();
    const auto notifies = observed_server(true);
    notifies->survey = [&] { return spi::Failure(hf::errc::unavailable); };
    const auto client = scripted::open(notifies, "ttl=1h&request_timeout=300ms");
    const auto election = client.make_election("e").value();
    const auto begun = hf::boot_clock::now();
    CHECK(election.observe({}, 1h).error() == hf::errc::unavailable);
    trial.within(hf::boot_clock::now() - begun, 1s, "the end of the call");
    CHECK(notifies->surveys >= 2);
    // What another look would not mend ends it at once.
    const int before = notifies->surveys;
    notifies->survey = [&] { return spi::Failure(hf::errc::denied); };
    CHECK(election.observe({}, 1h).error() == hf::errc::denied);
    CHECK(notifies->surveys == before + 1);
}

TEST_CASE("an observer that is not answered can be cancelled, and ends with its client",
          "[election]") {
    const auto notifies = observed_server(true);
    std::atomic<bool> away{false};
    notifies->survey = [&]() -> spi::Answer<spi::Survey> {
        if (away) return spi::Failure(hf::errc::unavailable);
        return spi::Survey();
    };
    auto client = scripted::open(notifies, "ttl=1h&request_timeout=200ms");
    const auto election = client.make_election("e").value();
    std::stop_source stop;
    auto cancelled =
        std::async(std::launch::async, [&] { return election.observe({}, 1h, stop.get_token()); });
    auto closed = election.async_observe({}, 1h, asio::use_future);
    lab::wait_until([&] { return notifies->looks == 2; }, 10s, "both have looked");
    away = true;
    notifies->events.load()->changed("e");
    lab::wait_until([&] { return notifies->looks > 6; }, 10s, "they look again");
    stop.request_stop();
    CHECK(cancelled.get().error() == hf::errc::cancelled);
    client.close();
    try {
        (void)closed.get();
        FAIL("nobody leads");
    } catch (const boost::system::system_error& e) {
        CHECK(e.code() == hf::errc::closed);
    }
}
