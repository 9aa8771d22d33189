#include "ride.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

namespace holdfast {
namespace {

template <class Executor>
bool take_if(const asio::any_completion_executor& from,
             std::optional<asio::any_io_executor>& into) {
    const auto* found = from.target<Executor>();
    if (found != nullptr) into = *found;
    return found != nullptr;
}

}  // namespace

std::optional<asio::any_io_executor> Ride::waits_on(const asio::any_completion_executor& e) {
    std::optional<asio::any_io_executor> out;
    take_if<asio::io_context::executor_type>(e, out) ||
        take_if<asio::strand<asio::any_io_executor>>(e, out) ||
        take_if<asio::strand<asio::io_context::executor_type>>(e, out) ||
        take_if<asio::thread_pool::executor_type>(e, out);
    return out;
}

Ride::Ride(std::shared_ptr<Engine> engine, Passage passage)
    : engine_(std::move(engine)), lane_(std::move(passage.lane)), descriptor_(passage.where) {}

Ride::~Ride() {
    engine_->schedule().cancel(*this);
    if (descriptor_.is_open()) descriptor_.release();
    if (lane_) engine_->sole_lane().give_back(std::move(lane_));
}

bool Ride::start(boot_clock::time_point deadline) {
    deadline_ = deadline;
    if (!begin(*lane_)) return false;
    fd_ = lane_->descriptor();
    wait();
    return true;
}

void Ride::wait() {
    engine_->schedule().set(*this, deadline_);
    error_code ec;
    descriptor_.assign(fd_, ec);
    if (ec) return engine_->post([self = self()] { self->give_up({}); });
    // The last word here: it may be readable at once, on another thread.
    descriptor_.async_wait(asio::posix::descriptor_base::wait_read,
                           [self = self()](error_code) { self->readable(); });
}

void Ride::readable() {
    descriptor_.release();  // before the lane may close it
    {
        const std::lock_guard hold(mutex_);
        if (phase_ == Phase::given_up) return;
        phase_ = Phase::taking;
    }
    const bool whole = finish(*lane_);
    if (whole) {
        engine_->schedule().cancel(*this);
        engine_->sole_lane().give_back(std::move(lane_));
        over();
    }
    error_code why;
    {
        const std::lock_guard hold(mutex_);
        phase_ = whole ? Phase::done : Phase::waiting;
        why = stopped_;
    }
    if (why) engine_->post([self = self(), why] { self->give_up(why); });
    if (!whole) wait();
}

void Ride::give_up(error_code why) {
    Phase found;
    {
        const std::lock_guard hold(mutex_);
        found = phase_;
        if (found == Phase::taking && why) stopped_ = why;
        if (found == Phase::waiting) {
            phase_ = Phase::given_up;
            abandon(*lane_);
        }
    }
    if (found == Phase::taking) return;  // what comes of it is known in a moment
    if (found == Phase::waiting) over();
    if (why) stop(why);
}

}  // namespace holdfast
