// Lends blocking paths to one calling thread at a time.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace holdfast {

/// Keeps idle lanes, each for a minute, and lends at most eight at once; further callers use the
/// engine. Thread-safe.
class Lanes {
public:
    class Loan {
    public:
        Loan() = default;
        Loan(Lanes* from, std::unique_ptr<spi::Lane> lane) : from_(from), lane_(std::move(lane)) {}
        Loan(Loan&&) noexcept = default;
        Loan& operator=(Loan&&) = delete;
        ~Loan() { give_back(); }
        void give_back() noexcept {
            if (lane_) from_->give_back(std::move(lane_));
        }
        explicit operator bool() const noexcept { return lane_ != nullptr; }
        spi::Lane* operator->() const noexcept { return lane_.get(); }
        spi::Lane& operator*() const noexcept { return *lane_; }

    private:
        Lanes* from_ = nullptr;
        std::unique_ptr<spi::Lane> lane_;
    };

    static constexpr std::chrono::seconds patience{60};

    /// Any thread calls `watch` with the moment at which close_idle() is due.
    Lanes(spi::Backend& backend, std::function<void(boot_clock::time_point)> watch)
        : backend_(&backend), watch_(std::move(watch)) {
        idle_.reserve(most);  // a return must not fail
    }
    /// Empty when the backend has no lane or cannot open one now, when eight are lent, and after
    /// stop().
    Loan borrow();
    /// Closes the lanes that nobody has borrowed for `patience`. Sends a few bytes at most.
    void close_idle(boot_clock::time_point now);
    /// Closes the idle lanes, and the others on their return.
    void stop();
    /// After stop(): waits until all lanes are back, at most until then.
    void wait(boot_clock::time_point until);

private:
    void give_back(std::unique_ptr<spi::Lane>) noexcept;
    void back_with_none();  // under the mutex

    struct Idle {
        std::unique_ptr<spi::Lane> lane;
        boot_clock::time_point since;
    };
    static constexpr std::size_t most = 8;
    spi::Backend* backend_;
    const std::function<void(boot_clock::time_point)> watch_;
    std::mutex mutex_;
    std::condition_variable back_;
    std::vector<Idle> idle_;  // the last one is borrowed first, so the first is idle for longest
    std::size_t out_ = 0;
    bool stopped_ = false, none_ = false, watched_ = false;
};

}  // namespace holdfast
