// What all connections of one client share.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "holdfast/clock.hpp"
#include "holdfast/spi/host_names.hpp"
#include "holdfast/spi/owner.hpp"
#include "options.hpp"
#include "statements.hpp"
#include "watchdog.hpp"

namespace holdfast::postgresql {

/// Microseconds of the clock that deadlines are given in.
inline std::int64_t local_us(boot_clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

struct Shared {
    Shared(const spi::Settings& s, const boost::asio::any_io_executor& engine)
        : options(s),
          statements(options.schema),
          me(spi::make_owner({}).substr(0, 22)),
          watchdog(std::make_shared<Watchdog>(engine)) {}

    const Options options;
    const Statements statements;
    spi::HostNames names;
    const std::string me;  ///< this client in a line
    const std::shared_ptr<Watchdog> watchdog;
    std::atomic<std::uint64_t> requests{0};
    /// For what an operator should know; not after the watchdog was closed.
    std::function<void(std::string)> warn;

    /// The server's clock when it was read, and ours at the receipt: a lower bound of the true
    /// offset, so a deadline in the server's time is never too late.
    void heard_clock(std::int64_t server_us) noexcept {
        offset_ = server_us - local_us(boot_clock::now());
    }
    std::int64_t server_us(boot_clock::time_point t) const noexcept {
        return offset_ + local_us(t);
    }

    /// The server had no connection left: spare ones are not made until then.
    void crowd(boot_clock::time_point until) noexcept {
        crowded_until_ = until.time_since_epoch().count();
    }
    boot_clock::time_point crowded_until() const noexcept {
        return boot_clock::time_point(boot_clock::duration(crowded_until_));
    }

    /// The address that was reached last: where a caller's thread connects without asking DNS.
    std::string reached() const {
        const std::lock_guard hold(mutex_);
        return reached_;
    }
    void reach(std::string address) {
        const std::lock_guard hold(mutex_);
        reached_ = std::move(address);
    }

private:
    std::atomic<std::int64_t> offset_{0}, crowded_until_{0};
    mutable std::mutex mutex_;
    std::string reached_;
};

}  // namespace holdfast::postgresql
