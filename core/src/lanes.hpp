// Blocking paths that are lent to one calling thread at a time.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace holdfast {

/// Keeps idle lanes and lends them; at most eight at once, then callers take the engine.
/// Thread-safe.
class Lanes {
public:
    class Loan {
    public:
        Loan() = default;
        Loan(Lanes* from, std::unique_ptr<spi::Lane> lane) : from_(from), lane_(std::move(lane)) {}
        Loan(Loan&&) noexcept = default;
        Loan& operator=(Loan&&) = delete;
        ~Loan() { give_back(); }
        void give_back() {
            if (lane_) from_->give_back(std::move(lane_));
        }
        explicit operator bool() const noexcept { return lane_ != nullptr; }
        spi::Lane* operator->() const noexcept { return lane_.get(); }
        spi::Lane& operator*() const noexcept { return *lane_; }

    private:
        Lanes* from_ = nullptr;
        std::unique_ptr<spi::Lane> lane_;
    };

    explicit Lanes(spi::Backend& backend) : backend_(&backend) {}
    /// Empty when the backend has none or cannot open one now, when eight are out, and after
    /// stop().
    Loan borrow();
    /// Closes the idle ones; those that are out are closed on their return.
    void stop();
    /// After stop(): waits for those that are out, at most until then.
    void wait(boot_clock::time_point until);

private:
    void give_back(std::unique_ptr<spi::Lane>);
    void back_with_none();  // under the mutex

    static constexpr std::size_t most = 8;
    spi::Backend* backend_;
    std::mutex mutex_;
    std::condition_variable back_;
    std::vector<std::unique_ptr<spi::Lane>> idle_;
    std::size_t out_ = 0;
    bool stopped_ = false, none_ = false;
};

}  // namespace holdfast
