// A deadline for all that a connection does: reads, writes and handshakes have none.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "holdfast/spi/net/gate.hpp"

namespace holdfast::spi::net {

/// Calls close() of the connection at the deadline, on the executor, unless the watchdog or the
/// connection is destroyed first.
template <class Connection>
class Watchdog {
public:
    Watchdog(const asio::any_io_executor& executor, boot_clock::time_point deadline,
             const std::shared_ptr<Connection>& connection)
        : timer_(executor, steady(deadline)), fired_(std::make_shared<bool>(false)) {
        timer_.async_wait([weak = std::weak_ptr(connection), fired = fired_](error_code ec) {
            const auto alive = weak.lock();
            if (ec || !alive) return;
            *fired = true;
            alive->close();
        });
    }
    bool fired() const noexcept { return *fired_; }

private:
    asio::steady_timer timer_;
    std::shared_ptr<bool> fired_;
};

}  // namespace holdfast::spi::net
