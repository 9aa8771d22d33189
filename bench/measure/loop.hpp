// Drives a loop of callbacks on the calling thread, with an end to the patience.
#pragma once
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "measure/latency.hpp"

namespace holdfast::bench {

/// Runs what comes up on the loop until `done()`, but no longer than until `cap`; says which.
template <class Done>
bool run_until(boost::asio::io_context& loop, Clock::time_point cap, Done done) {
    const auto guard = boost::asio::make_work_guard(loop);  // waiting for more is no end
    loop.restart();
    while (!done() && Clock::now() < cap) {
        loop.run_one_until(cap);
        // The clock is looked at now and then: it is no part of what is measured.
        for (int i = 0; i < 32 && !done() && loop.poll_one() != 0; ++i) {
        }
    }
    return done();
}

}  // namespace holdfast::bench
