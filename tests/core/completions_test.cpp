// Handlers of the user's: where they run, and what those that go wrong may cost.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>
#include <thread>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
namespace asio = boost::asio;
namespace spi = holdfast::spi;
using namespace std::chrono_literals;
using hf::errc;
using holdfast::lab::wait_until;
using scripted::Server;

namespace {

/// Runs what it is given right there.
struct Inline {
    template <class F>
    void execute(F f) const {
        f();
    }
    bool operator==(const Inline&) const noexcept { return true; }
    bool operator!=(const Inline&) const noexcept { return false; }
};

/// Throws away what it is given, as one that was shut down may.
struct Immediate {
    template <class F>
    void execute(F&&) const noexcept {}
    bool operator==(const Immediate&) const noexcept { return true; }
    bool operator!=(const Immediate&) const noexcept { return false; }
};

/// Busy for everybody, until it is told otherwise.
std::shared_ptr<Server> busy_server() {
    const auto server = std::make_shared<Server>();
    server->attempt = [](spi::Attempt& a) { a.outcome = spi::Attempt::Busy{60s, false}; };
    return server;
}

/// A decorator whose handler never comes back, as in a forked child.
class Forgetful final : public hf::Lock {
public:
    std::string_view name() const noexcept override { return "x"; }
    const hf::Capabilities& capabilities() const noexcept override { return capabilities_; }
    hf::Kind kind() const noexcept override { return hf::Kind::mutex; }
    std::string place() const override { return {}; }
    std::unique_ptr<hf::Lock> clone() const override { return std::make_unique<Forgetful>(); }

private:
    void do_async_acquire(const hf::AcquireOptions&, Handler) const override {}
    hf::Capabilities capabilities_;
};

/// Each handler blocks its thread until the untouched lease was renewed three times meanwhile.
template <class Executor>
void block_in_handlers(const Executor& where) {
    const auto server = std::make_shared<Server>();
    std::atomic<int> renewed{0}, left{3}, stood_still{0};
    server->renew = [&](spi::Held& h) { renewed += h.name == "untouched" ? 1 : 0; };
    const auto client = scripted::open(server, "ttl=300ms");
    const auto untouched = client.make_lock("untouched").value()->acquire().value();
    const auto lock = client.make_lock("x").value();
    auto other = client.make_lock("other").value()->acquire().value();
    const auto block = [&] {
        const int enough = renewed + 3;
        if (!holdfast::lab::reached([&] { return renewed >= enough; }, 2s)) ++stood_still;
        --left;
    };
    const auto run = [&](hf::error_code) { block(); };
    lock->async_acquire({}, asio::bind_executor(where, [&](auto, hf::Lease) { block(); }));
    other.async_renew(asio::bind_executor(where, run));
    other.async_lost(asio::bind_executor(where, run));
    server->events.load()->lost(other.owner_id(), hf::make_error_code(errc::lost));
    wait_until([&] { return left == 0; }, 20s, "all have run");
    CHECK(stood_still == 0);
    CHECK(untouched.state() == hf::LeaseState::held);
}

}  // namespace

TEST_CASE("a handler that blocks costs no other lease, wherever it runs", "[core]") {
    SECTION("an executor that runs it at once") {
        block_in_handlers(Inline());
    }
    SECTION("a strand of the system's") {
        block_in_handlers(asio::make_strand(asio::system_executor()));
    }
    SECTION("a strand of any executor") {
        block_in_handlers(asio::make_strand(asio::any_io_executor(asio::system_executor())));
    }
    SECTION("the system's") {
        block_in_handlers(asio::system_executor());
    }
}

TEST_CASE("an acquisition that was never completed was not granted", "[core]") {
    Forgetful lock;
    const auto got = lock.acquire();
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error() == errc::cancelled);
}

TEST_CASE("a loop takes those with it that wait to run there", "[core]") {
    const auto server = busy_server();
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    const auto mine = std::make_shared<int>();
    {
        asio::io_context loop, strand_loop, any_loop;
        asio::thread_pool threads(1), strand_threads(1);
        const auto ask = [&](const auto& where) {
            lock->async_acquire({.wait = 600s},
                                asio::bind_executor(where, [mine](hf::error_code, hf::Lease) {
                                    FAIL("a loop that was never run");
                                }));
        };
        ask(loop.get_executor());
        ask(asio::make_strand(strand_loop.get_executor()));
        ask(asio::make_strand(asio::any_io_executor(any_loop.get_executor())));
        threads.stop(), strand_threads.stop();
        ask(threads.get_executor());
        ask(asio::make_strand(strand_threads.get_executor()));
        wait_until([&] { return server->attempts == 5; }, 5s, "they wait");
        CHECK(mine.use_count() == 6);
    }
    CHECK(mine.use_count() == 1);
    // Nobody waits any more: they have left the line.
    wait_until([&] { return server->withdrawals == 5 && client.stats().waiting == 0; }, 5s, "left");
}

TEST_CASE("a loop that ends while the engine completes calls on it", "[core]") {
    const auto server = std::make_shared<Server>();
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    std::atomic<int> alive{0};
    struct Counted {
        explicit Counted(std::atomic<int>& c) : count(&c) { ++c; }
        ~Counted() { --*count; }
        std::atomic<int>* count;
    };
    for (int round = 0; round < 300; ++round) {
        asio::io_context loop;
        for (int i = 0; i < 10; ++i)
            lock->async_acquire(
                {}, asio::bind_executor(loop, [counted = std::make_shared<Counted>(alive)](
                                                  hf::error_code, hf::Lease lease) {
                    lease.async_release(hf::Outcome::done, [](hf::error_code, auto) {});
                }));
        loop.poll();
    }
    CHECK(alive == 0);
    wait_until([&] { return client.stats().held == 0 && client.stats().waiting == 0; }, 10s,
               "all are given back");
}

// What a composed operation names as its executor counts as work there.
TEST_CASE("a loop takes those with it that count as its work", "[core]") {
    constexpr auto tracked = asio::execution::outstanding_work.tracked;
    const auto server = busy_server();
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    const auto mine = std::make_shared<int>();
    {
        asio::io_context loop;
        asio::thread_pool threads(1);
        threads.stop();
        const auto done = [mine](auto...) { FAIL("a loop that was never run"); };
        const auto ask = [&](const auto& where) {
            lock->async_acquire({.wait = 600s}, asio::bind_executor(where, done));
        };
        ask(asio::require(loop.get_executor(), tracked));
        ask(asio::require(threads.get_executor(), tracked));
        ask(asio::make_strand(asio::require(loop.get_executor(), tracked)));
        ask(asio::make_strand(asio::require(threads.get_executor(), tracked)));
        ask(asio::make_strand(asio::any_io_executor(asio::require(loop.get_executor(), tracked))));
        auto step = [&lock, first = true](auto& self, hf::error_code ec = {},
                                          const hf::Lease& = {}) mutable {
            if (!std::exchange(first, false)) return self.complete(ec);
            lock->async_acquire({.wait = 600s}, std::move(self));
        };
        auto plain = [mine](hf::error_code) { FAIL("a loop that was never run"); };
        asio::async_compose<decltype(plain), void(hf::error_code)>(step, plain, loop);
        wait_until([&] { return server->attempts == 6; }, 5s, "they wait");
    }
    CHECK(mine.use_count() == 1);
    wait_until([&] { return server->withdrawals == 6 && client.stats().waiting == 0; }, 5s, "left");
}

// They may be in what the handler owns, as a coroutine's frame does.
TEST_CASE("nothing is written to the diagnostics of a call that ended with its loop", "[core]") {
    const auto server = busy_server();
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    hf::Diagnostics words;
    struct Frame {
        explicit Frame(hf::Diagnostics* w) : words(w) {}
        Frame(const Frame&) = delete;
        Frame& operator=(const Frame&) = delete;
        hf::Diagnostics* const words;
        ~Frame() { words->add("", "the frame has ended"); }
    };
    {
        asio::io_context loop;
        lock->async_acquire({.wait = 600s, .diagnostics = &words},
                            asio::bind_executor(loop, [frame = std::make_shared<Frame>(&words)](
                                                          auto, const hf::Lease&) {}));
        wait_until([&] { return server->attempts == 1; }, 5s, "it waits");
    }
    wait_until([&] { return client.stats().waiting == 0; }, 5s, "it has ended");
    CHECK(words.text() == "the frame has ended");
}

// With AddressSanitizer: they are freed while the engine is about to write to them.
TEST_CASE("a loop with calls under way takes their diagnostics with it", "[core]") {
    const auto server = std::make_shared<Server>();
    server->attempt = [](spi::Attempt& a) { a.outcome = spi::Attempt::Busy{60s, false}; };
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    for (int round = 0; round < 300; ++round) {
        asio::io_context loop;
        for (int i = 0; i < 10; ++i) {
            const auto words = std::make_shared<hf::Diagnostics>();
            const hf::milliseconds wait(i % 3);
            lock->async_acquire({.wait = wait, .diagnostics = words.get()},
                                asio::bind_executor(loop, [words](auto, const hf::Lease&) {}));
        }
        loop.poll();
    }
    wait_until([&] { return client.stats().waiting == 0; }, 10s, "all have ended");
    CHECK(client.stats().held == 0);
}

// Whoever closes waits for the handlers; a handler that closes in its turn must not wait for that.
TEST_CASE("closing from a dying handler beside another close", "[core]") {
    struct State {
        std::promise<void> done;
        std::unique_ptr<hf::Client> client;
    };
    const auto state = std::make_shared<State>();
    auto done = state->done.get_future();
    std::thread([state] {
        {
            const auto server = busy_server();
            state->client = std::make_unique<hf::Client>(scripted::open(server));
            struct Closes {
                explicit Closes(hf::Client& c) : client(c) {}  // clang 14 needs it
                hf::Client client;  // the handler may end after all else of this test
                ~Closes() { client.close(); }
            };
            const auto lock = state->client->make_lock("x").value();
            for (int i = 0; i < 3; ++i)
                lock->async_acquire(
                    {.wait = 600s},
                    asio::bind_executor(Immediate(),
                                        [closes = std::make_shared<Closes>(*state->client)](
                                            hf::error_code, hf::Lease) {}));
            wait_until([&] { return server->attempts == 3; }, 5s, "they wait");
            state->client->close();
            state->client->close();
        }
        state->done.set_value();
    }).detach();
    REQUIRE(done.wait_for(10s) == std::future_status::ready);
}

// With ThreadSanitizer: the slot was assigned when the handler had been put where it completes.
TEST_CASE("the wait for a loss is cancelled, or completes, at any moment", "[core]") {
    const auto server = std::make_shared<Server>();
    const auto client = scripted::open(server, "ttl=60s");
    const auto lock = client.make_lock("x").value();
    asio::thread_pool threads(2);
    for (int round = 0; round < 300; ++round) {
        auto lease = lock->acquire().value();
        auto on_strand = asio::make_strand(threads.get_executor());
        asio::cancellation_signal signal;
        std::promise<hf::error_code> told;
        server->events.load()->lost(lease.owner_id(), hf::make_error_code(errc::lost));
        lease.async_lost(asio::bind_executor(
            on_strand, asio::bind_cancellation_slot(
                           signal.slot(), [&](hf::error_code ec) { told.set_value(ec); })));
        std::promise<void> emitted;
        asio::post(on_strand, [&] {
            signal.emit(asio::cancellation_type::terminal);
            emitted.set_value();
        });
        emitted.get_future().get();
        const auto ec = told.get_future().get();
        CHECK((ec == errc::lost || ec == errc::cancelled));
    }
}

TEST_CASE("the time of a loss does not depend on how many leases are held", "[core]") {
    const auto per_loss = [](int count) {
        const auto server = std::make_shared<Server>();
        const auto client = scripted::open(server, "ttl=600s");
        std::vector<hf::Lease> leases;
        std::vector<std::unique_ptr<hf::Lock>> locks;
        for (int i = 0; i < count; ++i) {
            locks.push_back(client.make_lock("n/" + std::to_string(i)).value());
            leases.push_back(locks.back()->acquire().value());
        }
        const auto before = hf::boot_clock::now();
        for (const auto& lease : leases)
            server->events.load()->lost(lease.owner_id(), hf::make_error_code(errc::lost));
        wait_until([&] { return client.stats().lost == static_cast<std::uint64_t>(count); }, 60s,
                   "all are lost");
        return std::chrono::duration<double, std::micro>(hf::boot_clock::now() - before).count() /
               count;
    };
    // The quickest of three: another program may have had the processor meanwhile.
    double few = per_loss(500), many = per_loss(10'000);
    for (int again = 0; again < 2; ++again) {
        few = std::min(few, per_loss(500));
        many = std::min(many, per_loss(10'000));
    }
    INFO(few << " us with 500 leases, " << many << " us with 10,000");
    CHECK(many < 5 * few);  // it was in proportion to them: 20 times
}
