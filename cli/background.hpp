// A blocking call on a thread of its own, whose end the main loop can poll for.
#pragma once
#include <sys/eventfd.h>

#include <functional>
#include <optional>
#include <thread>

#include "holdfast/spi/signal_masked_thread.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {

/// Wakes a poll() from another thread.
class Bell {
public:
    Bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    int fd() const noexcept { return fd_.get(); }
    void ring() noexcept { ::eventfd_write(fd_.get(), 1); }
    void clear() noexcept {
        eventfd_t ignored = 0;
        ::eventfd_read(fd_.get(), &ignored);
    }

private:
    UniqueFd fd_;
};

/// One call at a time; the destructor waits for it.
template <class T>
class Background {
public:
    ~Background() {
        if (thread_.joinable()) thread_.join();
    }
    void start(std::function<T()> call) {
        thread_ = spi::signal_masked_thread([this, call = std::move(call)] {
            value_.emplace(call());
            bell_.ring();
        });
    }
    bool busy() const noexcept { return thread_.joinable(); }
    /// Readable when the call has ended: then take().
    int fd() const noexcept { return bell_.fd(); }
    T take() {
        thread_.join();
        bell_.clear();
        T value = std::move(*value_);
        value_.reset();
        return value;
    }

private:
    Bell bell_;
    std::optional<T> value_;
    std::thread thread_;
};

}  // namespace holdfast::cli
