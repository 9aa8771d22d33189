// How a worker asks for a lock: the lock itself, as a candidate, or for an owner. Each has a form
// that blocks and one that does not.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "holdfast/lock.hpp"
#include "kernel.hpp"

namespace holdfast::sim {

struct Approach {
    using Handler = asio::any_completion_handler<Lock::Signature>;
    using Answer = std::pair<error_code, Lease>;
    std::function<result<Lease>(const AcquireOptions&, std::stop_token)> acquire;
    std::function<void(const AcquireOptions&, Handler)> start;
    /// This way may end so, beside what an acquisition may end with; null: with nothing else.
    std::function<bool(error_code)> expects = {};
    std::string who = {};  ///< for a trace
};

/// An asynchronous call, which may outlive the wait for it.
template <class Got>
struct Call {
    Kernel* kernel = nullptr;
    Thread* waits = nullptr;
    unsigned ends = 0;
    error_code error;
    Got got{};

    void ended(error_code ec, Got what) {
        ++ends;
        error = ec;
        got = std::move(what);
        kernel->wake(waits);
    }
};

}  // namespace holdfast::sim
