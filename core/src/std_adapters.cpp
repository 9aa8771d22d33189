// shared_mutex and recursive_mutex: leases behind std's interfaces.
#include "holdfast/recursive_mutex.hpp"
#include "holdfast/shared_mutex.hpp"
#include "std_adapter.hpp"
#include "thread_leases.hpp"

namespace holdfast {

// --- shared_mutex
// ---------------------------------------------------------------------------------

struct shared_mutex::Threads : ThreadLeases {};

shared_mutex::shared_mutex(std::unique_ptr<Lock> lock)
    : lock_(of_kind(std::move(lock), Kind::shared_mutex, "holdfast::shared_mutex")),
      threads_(std::make_unique<Threads>()) {}
shared_mutex::shared_mutex(const Client& client, std::string_view name, const LockOptions& options)
    : shared_mutex(made_by(client, name, with_kind(options, Kind::shared_mutex),
                           "holdfast::shared_mutex")) {}
shared_mutex::~shared_mutex() = default;

bool shared_mutex::enter(Mode mode, milliseconds wait) {
    AcquireOptions options;
    options.wait = wait;
    options.mode = mode;
    auto lease = lock_->acquire(options);
    if (!was_granted(lease, "holdfast::shared_mutex")) return false;
    threads_->push(std::move(*lease));
    return true;
}
void shared_mutex::leave() noexcept {
    threads_->pop();
}
const Lease& shared_mutex::lease() const {
    return threads_->top();
}

// --- recursive_mutex
// ------------------------------------------------------------------------------

struct recursive_mutex::Threads : ThreadLeases {};

recursive_mutex::recursive_mutex(std::unique_ptr<Lock> lock)
    : lock_(std::move(lock)), threads_(std::make_unique<Threads>()) {}
recursive_mutex::recursive_mutex(const Client& client, std::string_view name,
                                 const LockOptions& options)
    : recursive_mutex(made_by(client, name, options, "holdfast::recursive_mutex")) {}
recursive_mutex::~recursive_mutex() = default;

bool recursive_mutex::enter(milliseconds wait) {
    AcquireOptions options;
    options.wait = wait;
    auto lease = lock_.acquire(std::this_thread::get_id(), options);
    if (!was_granted(lease, "holdfast::recursive_mutex")) return false;
    threads_->push(std::move(*lease));
    return true;
}
void recursive_mutex::unlock() noexcept {
    threads_->pop();
}
const Lease& recursive_mutex::lease() const {
    return threads_->top();
}

}  // namespace holdfast
