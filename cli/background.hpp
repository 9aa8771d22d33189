// A blocking call on a thread of its own, whose end the main loop can poll for.
#pragma once
#include <sys/eventfd.h>

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "holdfast/spi/signal_masked_thread.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {

/// Wakes a poll() from another thread. Throws std::system_error where there is no descriptor for
/// it: nobody waits for a bell that cannot ring.
class Bell {
public:
    Bell() : fd_(checked_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}
    int fd() const noexcept { return fd_.get(); }
    void ring() noexcept { ::eventfd_write(fd_.get(), 1); }
    void clear() noexcept {
        eventfd_t ignored = 0;
        ::eventfd_read(fd_.get(), &ignored);
    }

private:
    UniqueFd fd_;
};

/// One call at a time. The destructor requests the call's stop, and waits for its end.
template <class T>
class Background {
public:
    using Call = std::function<T(std::stop_token)>;

    ~Background() {
        stop_.request_stop();
        if (thread_.joinable()) thread_.join();
    }
    /// Throws std::system_error when no thread can be started; nothing is busy then.
    void start(Call call) {
        thread_ = spi::signal_masked_thread([this, call = std::move(call)] {
            try {
                value_.emplace(call(stop_.get_token()));
            } catch (...) {
                fault_ = std::current_exception();
            }
            bell_.ring();
        });
    }
    /// As start(); false when no thread can be started.
    bool try_start(Call call) {
        try {
            start(std::move(call));
        } catch (const std::system_error&) {
            return false;
        }
        return true;
    }
    void request_stop() noexcept { stop_.request_stop(); }
    bool stop_requested() const noexcept { return stop_.stop_requested(); }
    bool busy() const noexcept { return thread_.joinable(); }
    /// Readable when the call has ended: then take().
    int fd() const noexcept { return bell_.fd(); }
    /// What the call returned; throws what it threw.
    T take() {
        thread_.join();
        bell_.clear();
        if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
        T value = std::move(*value_);
        value_.reset();
        return value;
    }

private:
    Bell bell_;
    std::stop_source stop_;
    std::optional<T> value_;
    std::exception_ptr fault_;
    std::thread thread_;
};

}  // namespace holdfast::cli
