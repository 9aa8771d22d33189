// Random callers of what stands above a Lock: modes, waits, cancellations and losses meet in
// whatever order, and in the end nothing is held, waited for or forgotten.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>
#include <random>
#include <thread>

#include "catch.hpp"

namespace asio = boost::asio;
namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using namespace std::chrono_literals;

namespace {

unsigned above_seed() {
    const unsigned seed = std::random_device()();
    UNSCOPED_INFO("seed " << seed);
    return seed;
}

using Random = std::mt19937;

int below(Random& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

hf::milliseconds random_wait(Random& random) {
    constexpr hf::milliseconds waits[] = {0ms, 1ms, 3ms, 20ms, 60s};
    return waits[below(random, 5)];
}

/// Without the lock: because somebody else had it, or it was cancelled.
bool expected_end(hf::error_code ec, hf::milliseconds wait, bool cancelled) {
    if (ec == errc::cancelled) return cancelled;
    if (wait == 0ms) return ec == errc::contended;
    return ec == errc::timed_out && wait < 60s;
}

/// One asynchronous call that may be cancelled, run to its end on a loop of its own.
template <class Result, class Start>
std::pair<hf::error_code, Result> run_async(Random& random, bool& cancelled, Start start) {
    asio::io_context loop;
    asio::cancellation_signal signal;
    std::optional<std::pair<hf::error_code, Result>> end;
    start(asio::bind_executor(
        loop, asio::bind_cancellation_slot(signal.slot(), [&](hf::error_code ec, Result r) {
            end.emplace(ec, std::move(r));
        })));
    const bool cancels = below(random, 3) == 0;
    if (cancels) loop.run_for(std::chrono::microseconds(below(random, 2000)));
    cancelled = cancels && !end;
    if (cancelled) signal.emit(asio::cancellation_type::terminal);
    loop.restart();
    loop.run();
    return end ? std::move(*end) : std::pair{hf::make_error_code(errc::closed), Result()};
}

}  // namespace

TEST_CASE("random: owners of a reentrant lock", "[reentrant][random]") {
    const auto seed = above_seed();
    const auto client = hf::Client::open("memory:random-again").value();
    constexpr int owners = 3;
    hf::Reentrant<int> lock(client.make_lock("it", {.kind = hf::Kind::shared_mutex}));
    std::atomic<int> exclusive[owners]{}, shared[owners]{}, overlaps{0}, wrong{0}, held{0};
    const auto inside = [&](int me, const hf::Lease& lease) {
        auto& mine = lease.mode() == hf::Mode::exclusive ? exclusive[me] : shared[me];
        ++mine;
        for (int o = 0; o < owners; ++o)
            if (o != me && (exclusive[o] > 0 || (&mine == &exclusive[me] && shared[o] > 0)))
                ++overlaps;
        if (!lab::stays_true([&] { return overlaps == 0; }, 300us)) ++wrong;
        --mine;
        ++held;
    };
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            Random random(seed + t);
            for (int i = 0; i < 150; ++i) {
                const int me = below(random, owners);
                hf::AcquireOptions o{.wait = random_wait(random)};
                if (below(random, 2) == 0) o.mode = hf::Mode::shared;
                hf::error_code ec;
                hf::Lease lease;
                bool cancelled = false;
                if (below(random, 2) == 0) {
                    std::tie(ec, lease) = run_async<hf::Lease>(
                        random, cancelled,
                        [&](auto handler) { lock.async_acquire(me, o, std::move(handler)); });
                } else {
                    auto got = lock.acquire(me, o);
                    if (got) lease = std::move(*got);
                    if (!got) ec = got.error();
                }
                if (ec && !expected_end(ec, o.wait, cancelled) && ec != errc::would_deadlock)
                    ++wrong;
                if (!ec) inside(me, lease);
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(overlaps == 0);
    CHECK(wrong == 0);
    CHECK(held > 0);
    lab::wait_until(
        [&] {
            const auto seen = client.inspect("it").value();
            return seen.holders.empty() && seen.waiters.empty() && client.stats().held == 0;
        },
        10s, "nothing is left");
}

TEST_CASE("random: sets of locks, some of which are broken", "[all][random]") {
    const auto seed = above_seed();
    const auto client = hf::Client::open("memory:random-sets").value();
    constexpr int names = 4;
    std::vector<std::unique_ptr<hf::Lock>> locks;
    for (int n = 0; n < names; ++n)
        locks.push_back(
            client.make_lock(std::to_string(n), {.ttl = 300ms, .kind = hf::Kind::shared_mutex})
                .value());
    std::atomic<int> wrong{0}, held{0}, done{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 5; ++t)
        threads.emplace_back([&, t] {
            Random random(seed + t);
            for (int i = 0; i < 80; ++i) {
                std::vector<hf::Part> parts;
                for (int n = 0; n < names; ++n)
                    if (below(random, 2) == 0)
                        parts.emplace_back(
                            *locks[static_cast<std::size_t>(n)],
                            below(random, 2) == 0 ? hf::Mode::shared : hf::Mode::exclusive);
                if (parts.empty()) continue;
                std::shuffle(parts.begin(), parts.end(), random);
                const hf::AcquireAllOptions o{.wait = random_wait(random)};
                hf::error_code ec;
                hf::LeaseSet set;
                bool cancelled = false;
                if (below(random, 2) == 0) {
                    std::tie(ec, set) = run_async<hf::LeaseSet>(
                        random, cancelled,
                        [&](auto handler) { hf::async_acquire_all(parts, o, std::move(handler)); });
                } else {
                    auto got = hf::acquire_all(parts, o);
                    if (got) set = std::move(*got);
                    if (!got) ec = got.error();
                }
                if (ec && !expected_end(ec, o.wait, cancelled) && ec != errc::lost) ++wrong;
                if (ec) continue;
                ++held;
                (void)lab::stays_true([&] { return set.valid(); }, 300us);
                if (below(random, 2) == 0) (void)set.release();
            }
            ++done;
        });
    Random random(seed + 99);
    while (done < 5) {
        (void)client.break_lock(std::to_string(below(random, names)), {.now = true});
        (void)lab::stays_true([&] { return done < 5; }, 20ms);
    }
    for (auto& t : threads)
        t.join();
    CHECK(wrong == 0);
    CHECK(held > 0);
    lab::wait_until(
        [&] {
            for (int n = 0; n < names; ++n) {
                const auto seen = client.inspect(std::to_string(n)).value();
                if (!seen.holders.empty() || !seen.waiters.empty()) return false;
            }
            return client.stats().held == 0 && client.stats().waiting == 0;
        },
        10s, "nothing is left");
}
