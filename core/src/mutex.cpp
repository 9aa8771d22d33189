#include "holdfast/mutex.hpp"

#include <exception>
#include <system_error>

namespace holdfast {
namespace {

[[noreturn]] void fail(const error_code& ec) {
    throw std::system_error(static_cast<std::error_code>(ec), "holdfast::mutex");
}

}  // namespace

mutex::mutex(result<std::unique_ptr<Lock>> lock) {
    if (!lock) fail(lock.error());
    lock_ = std::move(*lock);
}

bool mutex::enter(milliseconds wait) {
    const auto until = boot_clock::now();
    {
        std::unique_lock hold(gate_);
        const auto open = [&] { return !taken_; };
        if (wait == forever)
            free_.wait(hold, open);
        else if (!free_.wait_for(hold, wait, open))
            return false;
        taken_ = true;
    }
    const auto spent = std::chrono::ceil<milliseconds>(boot_clock::now() - until);
    AcquireOptions options;
    options.wait = wait == forever ? wait : std::max(wait - spent, milliseconds::zero());
    auto lease = lock_->acquire(options);
    if (lease) {
        lease_ = std::move(*lease);
        return true;
    }
    {
        const std::lock_guard hold(gate_);
        taken_ = false;
    }
    free_.notify_one();
    if (lease.error() == errc::contended || lease.error() == errc::timed_out) return false;
    fail(lease.error());
}

void mutex::unlock() noexcept {
    const bool unwinding = std::uncaught_exceptions() > 0;
    lease_.release(unwinding ? Outcome::abandoned : Outcome::done);
    lease_ = {};
    {
        const std::lock_guard hold(gate_);
        taken_ = false;
    }
    free_.notify_one();
}

}  // namespace holdfast
