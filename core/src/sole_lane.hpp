// The one path in halves of a client, lent to one asynchronous call at a time.
#pragma once
#include <memory>
#include <mutex>

#include "holdfast/spi/backend.hpp"

namespace holdfast {

/// Connected only once some calls in a row would have used it: who asks now and then needs no
/// second connection. One that breaks is connected again in the same way. Thread-safe.
class SoleLane {
public:
    using Ptr = std::unique_ptr<spi::AsyncLane>;

    explicit SoleLane(spi::Backend& backend) : backend_(&backend) {}
    /// Null: there is none, it is out, it is not connected, or stop() was called.
    Ptr borrow();
    /// After borrow() has lent nothing: the lane, when it is time to open it, for the caller to do
    /// so where it may block and to give it back.
    Ptr to_open();
    void give_back(Ptr);
    void stop();

private:
    static constexpr unsigned enough = 8;
    spi::Backend* backend_;
    std::mutex mutex_;
    Ptr idle_;
    unsigned asked_ = 0;  // in vain
    bool out_ = false, stopped_ = false, none_ = false;
};

}  // namespace holdfast
