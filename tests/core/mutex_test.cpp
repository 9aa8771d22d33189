// What holdfast::mutex adds to its Lock: the gate, the errors, the outcome.
#include <functional>
#include <future>
#include <holdfast/holdfast.hpp>
#include <thread>

#include "../support/catch.hpp"
#include "explain.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace hf = holdfast;
using namespace std::chrono_literals;

namespace {

/// A decorator of a user's: fails as it is told to.
class Moody final : public hf::Lock {
public:
    explicit Moody(std::unique_ptr<hf::Lock> inner) : inner_(std::move(inner)) {}
    std::string_view name() const noexcept override { return inner_->name(); }
    const hf::Capabilities& capabilities() const noexcept override {
        return inner_->capabilities();
    }
    hf::Kind kind() const noexcept override { return inner_->kind(); }
    std::string place() const override { return inner_->place(); }
    std::unique_ptr<hf::Lock> clone() const override {
        return std::make_unique<Moody>(inner_->clone());
    }
    static inline std::atomic<bool> throws{false};

private:
    void do_async_acquire(const hf::AcquireOptions& options, Handler handler) const override {
        inner_->async_acquire(options, std::move(handler));
    }
    hf::result<hf::Lease> do_acquire(const hf::AcquireOptions& options,
                                     std::stop_token stop) const override {
        if (throws) throw std::bad_alloc();
        return inner_->acquire(options, std::move(stop));
    }
    std::unique_ptr<hf::Lock> inner_;
};

struct Scope {
    std::function<void()> end;
    ~Scope() { end(); }
};

}  // namespace

TEST_CASE("a mutex whose lock threw is free for the next thread", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    hf::mutex mutex{std::unique_ptr<hf::Lock>(new Moody(client.make_lock("moody").value()))};
    Moody::throws = true;
    CHECK_THROWS_AS(mutex.lock(), std::bad_alloc);
    Moody::throws = false;
    REQUIRE(mutex.try_lock());
    mutex.unlock();
}

TEST_CASE("an exception from before lock() does not abandon what unlock() releases", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    const auto lock = client.make_lock("outcome").value();
    hf::mutex mutex{client.make_lock("outcome").value()};
    // Clean-up that takes the lock while an exception unwinds the stack, and does its work.
    try {
        const Scope cleans{[&] { const std::lock_guard held(mutex); }};
        throw std::runtime_error("earlier");
    } catch (const std::runtime_error&) {
    }
    CHECK(lock->acquire().value().previous_holder() == hf::PreviousHolder::released);
    try {
        const std::lock_guard held(mutex);
        throw std::runtime_error("the work failed");
    } catch (const std::runtime_error&) {
    }
    CHECK(lock->acquire().value().previous_holder() == hf::PreviousHolder::abandoned);
}

TEST_CASE("errors of both kinds compare with errc", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    try {
        hf::mutex no_name{client.make_lock("")};
        FAIL("a mutex without a name");
    } catch (const boost::system::system_error& e) {  // what value() throws
        CHECK(e.code() == hf::errc::bad_name);
        CHECK(e.code() != hf::errc::lost);
    }
    const hf::error_code code = make_error_code(hf::errc::lost);
    const std::error_code standard = code;
    CHECK(standard == hf::errc::lost);
    CHECK(hf::errc::lost == standard);
    CHECK(standard != hf::errc::revoked);
    CHECK(std::error_condition(hf::errc::lost) == standard);
    // A backend's own code, by its condition.
    const std::error_code native = hf::max_hold_error();
    CHECK(native == hf::errc::lost);
    CHECK(hf::error_code(boost::system::errc::timed_out, boost::system::generic_category()) !=
          hf::errc::timed_out);
}

TEST_CASE("a mutex takes any Lock", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    hf::mutex of_decorator{std::make_unique<Moody>(client.make_lock("a").value())};
    hf::result<std::unique_ptr<Moody>> maybe(
        std::make_unique<Moody>(client.make_lock("b").value()));
    hf::mutex of_result{std::move(maybe)};
    hf::mutex of_base{client.make_lock("c").value()};
    const std::scoped_lock all(of_decorator, of_result, of_base);
    CHECK(of_decorator.lease().name() == "a");
    CHECK(of_result.lease().valid());
}

TEST_CASE("a wait that is longer than clocks can count is a long wait", "[core]") {
    const auto client = hf::Client::open("memory:").value();
    hf::mutex mutex{client.make_lock("long").value()};
    const auto wait = GENERATE(std::chrono::hours(24) * 365 * 1'000, std::chrono::hours::max());
    mutex.lock();
    std::atomic<bool> asks{false};
    auto other = std::async(std::launch::async, [&] {
        asks = true;
        const bool got = mutex.try_lock_for(wait);
        if (got) mutex.unlock();
        return got;
    });
    holdfast::lab::wait_until([&] { return asks.load(); }, 10s, "it asks");
    CHECK(other.wait_for(100ms) == std::future_status::timeout);
    mutex.unlock();
    CHECK(other.get());
}
