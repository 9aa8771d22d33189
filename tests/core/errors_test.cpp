// Why a renewal or a release failed: what a lease, its events and the client's opening say of it.
#include <boost/asio/use_future.hpp>
#include <future>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;
using hf::errc;
using holdfast::lab::wait_until;
using scripted::Server;
using Answer = spi::Held::Renewal;
using Seen = hf::Event::Kind;

namespace {

hf::error_code denied() {
    return hf::make_error_code(errc::denied);
}

void refuses(spi::Held& h) {
    h.renewal = Answer::unknown;
    h.renewal_error = denied();
    h.released = hf::ReleaseResult::unreachable;
    h.release_error = denied();
    h.detail = "NOPERM no\npermission";
}

constexpr auto words = "NOPERM no permission";  // on one line
constexpr auto by_whom = "its row is gone";

}  // namespace

TEST_CASE("a refused renewal is reported in the server's words, also when the lease is lost by it",
          "[core]") {
    const auto server = std::make_shared<Server>();
    std::atomic<bool> refusing{true};
    server->renew = [&](spi::Held& h) {
        if (refusing) refuses(h);
    };
    scripted::Heard heard;
    const auto client = scripted::open(server, "ttl=1s", 1000ms, heard.sink());
    auto lease = client.make_lock("x").value()->acquire().value();
    CHECK_FALSE(lease.last_error().code);
    CHECK(lease.renew().error() == errc::unavailable);
    CHECK(lease.state() == hf::LeaseState::at_risk);
    CHECK(lease.last_error().code == errc::denied);
    CHECK(lease.last_error().text == words);
    CHECK(lease.share().value().last_error().text == words);

    refusing = false;
    REQUIRE(lease.renew());
    CHECK_FALSE(lease.last_error().code);
    CHECK(lease.last_error().text.empty());

    refusing = true;
    const auto lost = lease.lost();
    wait_until([&] { return lost.stop_requested(); }, 10s, "it is lost");
    CHECK(lease.lost_reason().message() == "its validity ended without a renewal");
    CHECK(lease.last_error().code == errc::denied);
    CHECK(lease.last_error().text == words);
    wait_until([&] { return !heard.of(Seen::lost).empty(); }, 10s, "the event");
    CHECK(heard.of(Seen::at_risk).front().reason == errc::denied);
    CHECK(heard.of(Seen::at_risk).front().text == words);
    CHECK(heard.of(Seen::lost).front().text == words);
    CHECK_THAT(
        log_line(heard.of(Seen::at_risk).front()),
        ContainsSubstring("the server refused a renewal of \"x\" (") && ContainsSubstring(words));
    CHECK_THAT(
        log_line(heard.of(Seen::lost).front()),
        ContainsSubstring("its validity ended without a renewal: ") && ContainsSubstring(words));
}

TEST_CASE("a loss that the server reports is told apart from a missing renewal", "[core]") {
    const auto server = std::make_shared<Server>();
    const bool by_renewal = GENERATE(false, true);
    std::string owner;
    server->attempt = [&](spi::Attempt& a) {
        owner = a.owner;
        Server::grants(a);
    };
    server->renew = [](spi::Held& h) {
        h.renewal = Answer::lost;
        h.detail = by_whom;
    };
    const auto client = scripted::open(server, "ttl=60s");
    auto lease = client.make_lock("x").value()->acquire().value();
    if (by_renewal) {
        CHECK(lease.renew().error() == errc::lost);
    } else {
        server->events.load()->lost(owner, hf::make_error_code(errc::lost));
        wait_until([&] { return !lease.valid(); }, 10s, "it is lost");
    }
    CHECK(lease.lost_reason() == errc::lost);
    CHECK(lease.lost_reason().message() == "the server no longer has the lease");
    CHECK(lease.last_error().code == lease.lost_reason());
    CHECK(lease.last_error().text == (by_renewal ? by_whom : ""));
    CHECK(client.stats().losses.gone == 1);
}

TEST_CASE("a release that the server refuses for good ends at once, and says why", "[core]") {
    const bool lane = GENERATE(false, true);
    INFO((lane ? "lane" : "engine"));
    const auto server = std::make_shared<Server>();
    server->has_lane = lane;
    server->release = refuses;
    scripted::Heard heard;
    const auto client = scripted::open(server, "ttl=60s&request_timeout=20s", 1000ms, heard.sink());
    const auto lock = client.make_lock("x").value();
    const auto before = hf::boot_clock::now();
    SECTION("a blocking call") {
        auto lease = lock->acquire().value();
        CHECK(lease.release() == hf::ReleaseResult::unreachable);
        CHECK(lease.state() == hf::LeaseState::released);
        CHECK(lease.last_error().code == errc::denied);
        CHECK(lease.last_error().text == words);
    }
    SECTION("an asynchronous call") {
        auto lease = lock->acquire().value();
        std::promise<hf::error_code> answer;
        lease.async_release([&](hf::error_code ec, hf::ReleaseResult r) {
            CHECK(r == hf::ReleaseResult::unreachable);
            answer.set_value(ec);
        });
        CHECK(answer.get_future().get() == errc::denied);
        CHECK(lease.last_error().text == words);
    }
    SECTION("a destructor") {
        (void)lock->acquire().value();
    }
    wait_until([&] { return !heard.of(Seen::warning).empty(); }, 10s, "a warning");
    CHECK(hf::boot_clock::now() - before < 20s);
    CHECK_THAT(heard.of(Seen::warning).front().text,
               ContainsSubstring("\"x\"") && ContainsSubstring(words));
    CHECK(server->releases == 2);
}

TEST_CASE("a release without an answer says so, and one that is answered later says nothing",
          "[core]") {
    const auto server = std::make_shared<Server>();
    std::atomic<bool> away{true};
    server->release = [&](spi::Held& h) {
        if (!away) return;
        h.released = hf::ReleaseResult::unreachable;
        h.detail = "timed out at 10.0.0.1";
    };
    const auto client = scripted::open(server, "ttl=60s&request_timeout=100ms");
    auto lease = client.make_lock("x").value()->acquire().value();
    CHECK(lease.release() == hf::ReleaseResult::unreachable);
    CHECK(lease.last_error().code == errc::unavailable);
    CHECK(lease.last_error().text == "timed out at 10.0.0.1");
    away = false;
    wait_until([&] { return !lease.last_error().code; }, 10s, "it is answered");
    CHECK(lease.release() == hf::ReleaseResult::released);
}

TEST_CASE("what close() gives back, its holder's release does not release again", "[core]") {
    const auto server = std::make_shared<Server>();
    server->capabilities = hf::Capabilities{hf::SafetyClass::a, {hf::Capability::lock_delay}};
    server->release_takes = 200ms;
    auto client = scripted::open(server, "ttl=60s");
    auto lease = client.make_lock("x", {.lock_delay = 60s}).value()->acquire().value();
    auto closing = std::async(std::launch::async, [&] { client.close(); });
    wait_until([&] { return !lease.valid(); }, 10s, "it is given back");
    CHECK(lease.release() == hf::ReleaseResult::already_expired);
    std::promise<void> released;
    lease.async_release([&](hf::error_code, hf::ReleaseResult) { released.set_value(); });
    released.get_future().get();
    closing.get();
    CHECK(lease.lost_reason() == errc::closed);
    CHECK(server->releases == 1);
}

TEST_CASE("a machine without threads, descriptors or memory is no wrong configuration", "[core]") {
    const auto fault = GENERATE(0, 1, 2);
    spi::Registry registry;
    spi::Descriptor d;
    d.name = "own", d.schemes = {"own"}, d.summary = "a test's own", d.example = "own:";
    d.hosts = spi::Descriptor::Hosts::none;
    d.path = spi::Descriptor::Path::optional;
    d.capabilities = [](const spi::Settings&) { return hf::Capabilities{}; };
    d.make = [&](const spi::Settings&, spi::Context) -> std::unique_ptr<spi::Backend> {
        if (fault == 0)
            throw std::system_error(EAGAIN, std::generic_category());  // as std::thread does
        if (fault == 1)
            throw boost::system::system_error(EMFILE, boost::system::system_category(), "epoll");
        throw std::bad_alloc();
    };
    registry.add(std::move(d));
    hf::Diagnostics why;
    const auto client = hf::Client::open("own:", {.registry = &registry, .diagnostics = &why});
    REQUIRE_FALSE(client.has_value());
    CHECK(client.error() == errc::unavailable);
    CHECK_THAT(why.text(), ContainsSubstring("this machine has no room"));
}
