// Lets a coroutine wait for a callback: a condition variable with a deadline.
#pragma once
#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <vector>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

namespace holdfast::spi::net {

namespace asio = boost::asio;

/// The same moment on the clock of Asio's timers, which may fire a little later.
inline std::chrono::steady_clock::time_point steady(boot_clock::time_point t) noexcept {
    if (t == boot_clock::time_point::max()) return std::chrono::steady_clock::time_point::max();
    const auto left = t - boot_clock::now();
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
}

/// Engine thread only. A waiter checks its condition again after each open(), which only says that
/// something has changed. May be destroyed while a coroutine waits.
class Gate {
public:
    /// Ends every wait that is under way.
    void open() {
        const auto waiting = waiting_;
        for (asio::steady_timer* t : *waiting)
            t->cancel();
    }
    /// Returns after the next open(), or at the deadline.
    asio::awaitable<void> wait(asio::any_io_executor executor, boot_clock::time_point deadline) {
        const auto waiting = waiting_;
        asio::steady_timer timer(executor, steady(deadline));
        const Entry entry(*waiting, timer);
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await timer.async_wait(token);
    }
    bool anyone_waits() const noexcept { return !waiting_->empty(); }

private:
    using List = std::vector<asio::steady_timer*>;
    class Entry {
    public:
        Entry(List& list, asio::steady_timer& timer) : list_(&list), timer_(&timer) {
            list.push_back(timer_);
        }
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        ~Entry() { list_->erase(std::find(list_->begin(), list_->end(), timer_)); }

    private:
        List* list_;
        asio::steady_timer* timer_;
    };
    std::shared_ptr<List> waiting_ = std::make_shared<List>();
};

}  // namespace holdfast::spi::net
