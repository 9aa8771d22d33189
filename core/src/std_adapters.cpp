// shared_mutex, recursive_mutex and counting_semaphore: leases behind std's interfaces.
#include <algorithm>
#include <deque>

#include "holdfast/counting_semaphore.hpp"
#include "holdfast/recursive_mutex.hpp"
#include "holdfast/shared_mutex.hpp"
#include "thread_leases.hpp"

namespace holdfast {

// --- shared_mutex
// ---------------------------------------------------------------------------------

struct shared_mutex::Threads : ThreadLeases {};

shared_mutex::shared_mutex(std::unique_ptr<Lock> lock)
    : lock_(of_kind(std::move(lock), Kind::shared_mutex, "holdfast::shared_mutex")),
      threads_(std::make_unique<Threads>()) {}
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

// --- counting_semaphore
// ---------------------------------------------------------------------------

struct counting_semaphore::Permits : ForkGuarded<std::deque<Lease>> {};

counting_semaphore::counting_semaphore(std::unique_ptr<Lock> lock)
    : lock_(of_kind(std::move(lock), Kind::semaphore, "holdfast::counting_semaphore")),
      permits_(std::make_unique<Permits>()) {}
counting_semaphore::~counting_semaphore() = default;

bool counting_semaphore::enter(milliseconds wait) {
    AcquireOptions options;
    options.wait = wait;
    auto lease = lock_->acquire(options);
    if (!was_granted(lease, "holdfast::counting_semaphore")) return false;
    if (const auto held = permits_->access()) held->push_back(std::move(*lease));
    return true;
}

void counting_semaphore::release(std::size_t permits) {
    std::deque<Lease> given_back;
    {
        const auto held = permits_->access();
        if (!held || permits > held->size())
            throw boost::system::system_error(make_error_code(held ? errc::not_held : errc::forked),
                                              "holdfast::counting_semaphore");
        for (; permits > 0; --permits) {
            given_back.push_back(std::move(held->front()));
            held->pop_front();
        }
    }
    for (Lease& l : given_back)
        l.release();
}

std::size_t counting_semaphore::held() const noexcept {
    const auto held = permits_->access();
    if (!held) return 0;
    return static_cast<std::size_t>(
        std::count_if(held->begin(), held->end(), [](const Lease& l) { return l.valid(); }));
}

}  // namespace holdfast
