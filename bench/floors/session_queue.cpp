#include "floors/session_queue.hpp"

#include <utility>

#include "bench.hpp"
#include "measure/loop.hpp"

namespace holdfast::bench {

SessionQueue::SessionQueue(std::size_t sessions,
                           const std::function<std::unique_ptr<LockSession>()>& connect) {
    for (std::size_t i = 0; i < sessions; ++i)
        all_.emplace_back(loop_, connect());
    for (One& one : all_)
        lock(one);
}

SessionQueue::~SessionQueue() {
    for (One& one : all_)
        one.readable.release();  // its session closes it
}

void SessionQueue::lock(One& one) {
    ++now_.requests;
    one.session->send_lock();
    await(one);
}

void SessionQueue::await(One& one) {
    one.readable.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this, &one](const error_code& ec) {
                                if (!ec) take(one);
                            });
}

void SessionQueue::take(One& one) {
    const auto done = one.session->answer();
    if (!done) return await(one);
    if (!*done)
        throw SelfCheck(one.holds ? "queue of sessions: the lock was not held"
                                  : "queue of sessions: the lock was refused");
    if (one.holds) {
        one.holds = false;
        return lock(one);
    }
    turns_.granted(&one, now_);
    one.holds = true;
    turns_.let_go();
    ++now_.requests;
    one.session->send_unlock();
    await(one);
}

HandOffs SessionQueue::run_for(double seconds) {
    now_ = {};
    turns_.forget();
    const auto start = Clock::now();
    run_until(loop_, start + in_seconds(seconds), [] { return false; });
    now_.seconds = seconds_since(start);
    return std::exchange(now_, {});
}

}  // namespace holdfast::bench
