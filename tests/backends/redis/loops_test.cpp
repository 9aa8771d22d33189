// A caller whose loop goes away with a call under way. That call is lost; no later call may
// take its answer for its own.
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <optional>
#include <random>

#include "catch.hpp"
#include "holdfast/lab/redis_server.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace hf = holdfast;
namespace asio = boost::asio;
using namespace std::chrono_literals;
using holdfast::lab::RedisServer;

namespace {

/// One acquisition on the loop; nothing while it has not completed.
struct Call {
    hf::error_code ec;
    hf::Lease lease;
    bool done = false;
};

std::shared_ptr<Call> call(hf::Lock& lock, asio::io_context& loop, hf::milliseconds wait) {
    auto out = std::make_shared<Call>();
    lock.async_acquire({.wait = wait}, asio::bind_executor(loop, [out](hf::error_code ec, auto l) {
                           out->ec = ec;
                           out->lease = std::move(l);
                           out->done = true;
                       }));
    return out;
}

}  // namespace

TEST_CASE("a loop destroyed with a call under way costs that call and no other") {
    auto server = RedisServer::start();
    for (const std::string mode : {"mode=fenced", "mode=plain"}) {
        INFO(mode);
        server.cli({"FLUSHALL"});
        asio::io_context loop;  // outlives the client, as the loops of others do
        const auto url = server.url() + "?ttl=60s&" + mode;
        const auto other = hf::Client::open(url).value();
        const auto held = other.make_lock("held").value()->acquire().value();
        auto client = hf::Client::open(url).value();
        const auto taken = client.make_lock("held").value();
        const auto open = client.make_lock("open").value();
        const auto mine = client.make_lock("mine").value()->acquire().value();
        // Many in a row: whatever the client keeps for such callers is there by now.
        for (int i = 0; i < 30; ++i) {
            const auto one = call(*open, loop, 0ms);
            loop.restart();
            loop.run();
            REQUIRE(one->done);
            REQUIRE_FALSE(one->ec);
            REQUIRE(one->lease.release() == hf::ReleaseResult::released);
        }
        for (int round = 0; round < 20; ++round) {
            INFO("round " << round);
            const auto name = "round/" + std::to_string(round);
            const auto own = client.make_lock(name).value();
            std::weak_ptr<Call> lost;
            {
                asio::io_context short_lived;
                lost = call(*own, short_lived, 0ms);
                holdfast::lab::wait_until(
                    [&] { return !other.inspect(name).value().holders.empty(); }, 10s, "granted");
            }
            // As Asio's own: a handler that can never run ends with its loop.
            CHECK(lost.expired());
            // Within a tenth of a second, the time in which no connection is looked at.
            const auto next = call(*taken, loop, 0ms);
            loop.restart();
            loop.run();
            REQUIRE(next->done);
            CHECK(next->ec == hf::errc::contended);
            CHECK_FALSE(next->lease.valid());
            CHECK(taken->try_acquire().error() == hf::errc::contended);
            CHECK(held.valid());
            // What the lost call may have taken is given back.
            CHECK(own->acquire({.wait = 10s}).has_value());
        }
        CHECK(mine.state() == hf::LeaseState::held);
    }
}
