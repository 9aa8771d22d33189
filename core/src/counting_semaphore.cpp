// counting_semaphore: leases of permits behind std's interface.
#include "holdfast/counting_semaphore.hpp"

#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/system_executor.hpp>
#include <list>

#include "holdfast/detail/fork_guarded.hpp"
#include "std_adapter.hpp"

namespace holdfast {
namespace {

constexpr const char* adapter = "holdfast::counting_semaphore";

/// Permits that were acquired together.
struct Together {
    Lease lease;
    std::size_t left = lease.permits();  ///< not released yet
};

bool is_lost(const Together& t) {
    return t.lease.state() == LeaseState::lost;
}

}  // namespace

struct counting_semaphore::Permits {
    struct Held {
        std::list<Together> all;  ///< the oldest first
        std::optional<std::stop_source> lost;

        void watch(Together& t) const {
            const auto told = [source = *lost](error_code ec) mutable {
                if (ec != errc::not_held) source.request_stop();
            };
            t.lease.async_lost(asio::bind_executor(asio::system_executor(), told));
        }
    };
    ForkGuarded<Held> held;
};

counting_semaphore::counting_semaphore(std::unique_ptr<Lock> lock)
    : lock_(of_kind(std::move(lock), Kind::semaphore, adapter)),
      permits_(std::make_unique<Permits>()) {}
counting_semaphore::counting_semaphore(const Client& client, std::string_view name,
                                       std::uint32_t limit, LockOptions options)
    : counting_semaphore(
          made_by(client, name, with_kind(options, Kind::semaphore, limit), adapter)) {}
counting_semaphore::~counting_semaphore() = default;

bool counting_semaphore::enter(milliseconds wait, std::uint32_t permits) {
    AcquireOptions options;
    options.wait = wait;
    options.permits = permits;
    auto lease = lock_->acquire(options);
    if (!was_granted(lease, adapter)) return false;
    if (const auto held = permits_->held.access()) {
        held->all.push_back({std::move(*lease)});
        if (held->lost) held->watch(held->all.back());
    }
    return true;
}

void counting_semaphore::release(std::size_t permits) {
    std::list<Together> given_back;  // released outside the mutex
    {
        const auto held = permits_->held.access();
        std::size_t all = 0;
        if (held)
            for (const Together& t : held->all)
                all += t.left;
        if (!held || permits > all)
            throw boost::system::system_error(make_error_code(held ? errc::not_held : errc::forked),
                                              adapter);
        for (const bool lost : {true, false}) {
            for (auto t = held->all.begin(); t != held->all.end() && permits > 0;) {
                const auto one = t++;
                if (lost && !is_lost(*one)) continue;
                const auto now = std::min(permits, one->left);
                permits -= now;
                one->left -= now;
                if (one->left == 0) given_back.splice(given_back.end(), held->all, one);
            }
        }
    }
    for (Together& t : given_back)
        t.lease.release();
}

std::size_t counting_semaphore::held() const noexcept {
    std::size_t valid = 0;
    if (const auto held = permits_->held.access())
        for (const Together& t : held->all)
            valid += t.lease.valid() ? t.left : 0;
    return valid;
}

std::stop_token counting_semaphore::lost() {
    const auto held = permits_->held.access();
    if (!held) {
        std::stop_source forked;
        forked.request_stop();
        return forked.get_token();
    }
    const bool over = held->lost && held->lost->stop_requested() &&
                      std::none_of(held->all.begin(), held->all.end(), is_lost);
    if (!held->lost || over) {
        held->lost.emplace();
        for (Together& t : held->all)
            held->watch(t);
    }
    return held->lost->get_token();
}

}  // namespace holdfast
