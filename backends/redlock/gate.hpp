// A coroutine's way to wait for several callbacks.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "holdfast/error.hpp"

namespace holdfast::redlock {

namespace asio = boost::asio;

/// Engine thread only. Hold it by shared_ptr in every callback, which may come late.
class Gate {
public:
    explicit Gate(const asio::any_io_executor& e) : timer_(e) {
        timer_.expires_at(std::chrono::steady_clock::time_point::max());
    }
    void enter() noexcept { ++inside_; }
    void leave() {
        if (--inside_ == 0) timer_.cancel();
    }
    /// Ends when everybody has left.
    static asio::awaitable<void> wait(std::shared_ptr<Gate> gate) {
        while (gate->inside_ > 0) {
            error_code ignored;
            auto token = asio::redirect_error(asio::use_awaitable, ignored);
            co_await gate->timer_.async_wait(token);
        }
    }

private:
    asio::steady_timer timer_;
    std::size_t inside_ = 0;
};

}  // namespace holdfast::redlock
