// Lends blocking paths to one calling thread at a time.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace holdfast {

/// Keeps idle lanes and lends at most eight at once; further callers use the engine. Thread-safe.
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

    explicit Lanes(spi::Backend& backend) : backend_(&backend) {
        idle_.reserve(most);  // a return must not fail
    }
    /// Empty when the backend has no lane or cannot open one now, when eight are lent, and after
    /// stop().
    Loan borrow();
    /// Closes the idle lanes, and the others on their return.
    void stop();
    /// After stop(): waits until all lanes are back, at most until then.
    void wait(boot_clock::time_point until);

private:
    void give_back(std::unique_ptr<spi::Lane>) noexcept;
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
