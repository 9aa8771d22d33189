// Several handles of one grant: the last one to let go releases it, and loss is that of all.
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <stop_token>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using hf::LeaseState;
using hf::ReleaseResult;
using namespace std::chrono_literals;

namespace {

struct Sharing {
    hf::Client client = hf::Client::open("memory:share").value();
    std::unique_ptr<hf::Lock> lock =
        client.make_lock("it", {.kind = hf::Kind::shared_mutex}).value();
    bool held() { return !client.inspect("it")->holders.empty(); }
};

}  // namespace

TEST_CASE("share: the last handle releases, with the worst outcome", "[share]") {
    Sharing g;
    auto first = g.lock->try_acquire().value();
    auto second = first.share().value();
    auto third = second.share().value();
    CHECK(second.fencing_token() == first.fencing_token());
    CHECK(second.owner_id() == first.owner_id());
    CHECK(first.release() == ReleaseResult::released);
    CHECK(first.release() == ReleaseResult::released);
    CHECK(first.state() == LeaseState::released);
    CHECK_FALSE(first.valid());
    CHECK(first.renew().error() == errc::not_held);
    CHECK(first.share().error() == errc::not_held);
    CHECK(g.held());
    CHECK(second.valid());
    CHECK(second.renew().has_value());
    CHECK(second.release(hf::Outcome::abandoned) == ReleaseResult::released);
    CHECK(g.held());
    CHECK(third.release() == ReleaseResult::released);
    CHECK_FALSE(g.held());
    CHECK(third.release() == ReleaseResult::released);
    CHECK(g.lock->try_acquire()->previous_holder() == hf::PreviousHolder::abandoned);
}

TEST_CASE("share: handles that are only destroyed give it back as well", "[share]") {
    Sharing g;
    {
        auto first = g.lock->try_acquire().value();
        auto second = first.share().value();
        { const auto moved = std::move(first); }
        CHECK(g.held());
        CHECK(second.valid());
    }
    lab::wait_until([&] { return !g.held(); }, 10s, "it is free");
    CHECK(g.client.stats().held == 0);
}

TEST_CASE("share: a lost grant is lost for all, and gives no more handles", "[share]") {
    Sharing g;
    auto first = g.lock->try_acquire().value();
    auto second = first.share().value();
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    CHECK(second.renew().error() == errc::revoked);
    CHECK(first.state() == LeaseState::lost);
    CHECK(second.state() == LeaseState::lost);
    CHECK(first.share().error() == errc::revoked);
    CHECK(first.release() == ReleaseResult::owned_by_other);
    CHECK(second.release() == ReleaseResult::owned_by_other);
    CHECK(hf::Lease().share().error() == errc::not_held);
}

TEST_CASE("share: a loss is told to each handle, and to each call that waits for one", "[share]") {
    Sharing g;
    auto first = g.lock->try_acquire().value();
    auto second = first.share().value();
    const auto a = first.lost(), b = second.lost();
    std::atomic<int> told{0}, callbacks{0};
    const auto count = [&] { ++callbacks; };
    const std::stop_callback on_a(a, count), on_b(b, count);
    const auto tell = [&](hf::error_code ec) { told += ec == errc::revoked; };
    for (int i = 0; i < 3; ++i) {
        first.async_lost(tell);
        second.async_lost(tell);
    }
    REQUIRE(g.client.break_lock("it", {.now = true}).has_value());
    CHECK(first.renew().error() == errc::revoked);
    CHECK(lab::reached([&] { return a.stop_requested() && b.stop_requested(); }, 10s));
    CHECK(lab::reached([&] { return callbacks == 2; }, 10s));
    CHECK(lab::reached([&] { return told == 6; }, 10s));
    CHECK(second.lost_reason() == errc::revoked);
    CHECK(second.last_error().code == errc::revoked);
}

TEST_CASE("share: each handle repeats its first answer", "[share]") {
    const auto client = hf::Client::open("memory:share-answers").value();  // it stays closed there
    auto first = client.make_lock("it").value()->try_acquire().value();
    auto second = first.share().value();
    REQUIRE(client.break_lock("it").has_value());
    CHECK(second.renew().error() == errc::revoked);
    CHECK(second.release() == ReleaseResult::owned_by_other);
    for (int i = 0; i < 2; ++i) {
        CHECK(first.release() == ReleaseResult::owned_by_other);
        CHECK(second.release() == ReleaseResult::owned_by_other);
    }
}

TEST_CASE("share: nothing is downgraded while another handle may be writing", "[share]") {
    Sharing g;
    auto first = g.lock->try_acquire().value();
    auto second = first.share().value();
    CHECK(first.downgrade().error() == errc::would_deadlock);
    CHECK(second.downgrade().error() == errc::would_deadlock);
    first.release();
    CHECK(first.downgrade().error() == errc::not_held);
    CHECK(second.downgrade().has_value());
    CHECK(second.mode() == hf::Mode::shared);
}

TEST_CASE("share: a handle that joins beside a downgrade prevents it, or reads", "[share]") {
    Sharing g;
    int both = 0, writing = 0;
    for (int round = 0; round < 3000; ++round) {
        auto lease = g.lock->acquire({.wait = 10s}).value();
        std::atomic<int> there{0};
        const auto together = [&] {
            for (++there; there < 2;)
                std::this_thread::yield();
        };
        bool downgraded = false;
        std::thread other([&] {
            together();
            downgraded = lease.downgrade().has_value();
        });
        together();
        const auto more = lease.share();
        const auto mode = more ? more->mode() : hf::Mode::shared;
        other.join();
        both += downgraded && more ? 1 : 0;
        writing += downgraded && mode == hf::Mode::exclusive ? 1 : 0;
    }
    INFO(both << " times both");
    CHECK(writing == 0);
}

TEST_CASE("share: many threads share and let go at once", "[share]") {
    Sharing g;
    for (int round = 0; round < 200; ++round) {
        auto first = g.lock->acquire({.wait = 10s}).value();
        auto root = first.share().value();
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([lease = root.share().value()]() mutable {
                auto more = lease.share();
                CHECK(lease.release() == ReleaseResult::released);
                if (more) CHECK(more->valid());
            });
        root.release();
        first.release();
        for (auto& t : threads)
            t.join();
        lab::wait_until([&] { return !g.held(); }, 10s, "it is free");
    }
    CHECK(g.client.stats().held == 0);
}
