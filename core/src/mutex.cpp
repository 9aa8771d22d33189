#include "holdfast/mutex.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>

#include "holdfast/detail/fork_guarded.hpp"
#include "std_adapter.hpp"

namespace holdfast {
namespace {

/// Longer than any program runs, and countable for every clock.
constexpr milliseconds long_wait = std::chrono::hours(24 * 365 * 100);

[[noreturn]] void fail(const error_code& ec) {
    throw boost::system::system_error(ec, "holdfast::mutex");
}

}  // namespace

/// Where threads that share the mutex queue.
struct mutex::Gate {
    struct Door {
        std::condition_variable opened;
        bool taken = false;
    };
    ForkGuarded<Door> door;
    int exceptions = 0;  // under way in the holder's thread when it locked; the holder's only

    bool enter(milliseconds wait) {
        auto mine = door.access();
        if (!mine) fail(make_error_code(errc::forked));
        const auto open = [&] { return !mine->taken; };
        if (wait == forever)
            mine->opened.wait(mine.hold(), open);
        else if (!mine->opened.wait_for(mine.hold(), std::min(wait, long_wait), open))
            return false;
        return mine->taken = true;
    }
    void leave() noexcept {
        auto mine = door.access();
        if (!mine) return;
        mine->taken = false;
        std::condition_variable& opened = mine->opened;
        mine.end();
        opened.notify_one();
    }
};

mutex::mutex(std::unique_ptr<Lock> lock)
    : lock_(std::move(lock)), gate_(std::make_unique<Gate>()) {}

mutex::mutex(const Client& client, std::string_view name, const LockOptions& options)
    : mutex(made_by(client, name, options, "holdfast::mutex")) {}

mutex::~mutex() = default;

bool mutex::enter(milliseconds wait) {
    const auto start = boot_clock::now();
    if (!gate_->enter(wait)) return false;
    // However this ends, by an exception of a Lock's as well, the next thread gets its turn.
    const auto leave = [](Gate* gate) { gate->leave(); };
    std::unique_ptr<Gate, decltype(leave)> inside(gate_.get(), leave);
    const auto spent = std::chrono::ceil<milliseconds>(boot_clock::now() - start);
    if (!acquire(wait == forever ? wait : std::max(wait - spent, milliseconds::zero())))
        return false;
    gate_->exceptions = std::uncaught_exceptions();
    (void)inside.release();
    return true;
}

bool mutex::acquire(milliseconds wait) {
    AcquireOptions options;
    options.wait = wait;
    auto lease = lock_->acquire(options);
    if (!was_granted(lease, "holdfast::mutex")) return false;
    lease_ = std::move(*lease);
    return true;
}

void mutex::unlock() noexcept {
    const bool unwinding = std::uncaught_exceptions() > gate_->exceptions;
    lease_.release(unwinding ? Outcome::abandoned : Outcome::done);
    lease_ = {};
    gate_->leave();
}

}  // namespace holdfast
