#include "schedule.hpp"

#include <sys/timerfd.h>

#include <cerrno>
#include <system_error>

namespace holdfast {

Schedule::Schedule(boost::asio::io_context& io) : timer_(io) {
    const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
    timer_.assign(fd);
    wait();
}

Schedule::~Schedule() {
    set_.clear();
}

void Schedule::set(Timed& t, boot_clock::time_point due) {
    const std::lock_guard hold(mutex_);
    take_out(t);
    t.due_ = due;
    set_.insert(t);
    t.scheduled_.store(true, std::memory_order_relaxed);
    if (due < armed_) arm(due);
}

void Schedule::cancel(Timed& t) noexcept {
    // Most of those that are cancelled are not set.
    if (!t.scheduled_.load(std::memory_order_acquire)) return;
    // The timer stays armed: firing once for nothing is cheaper than a system call per release.
    const std::lock_guard hold(mutex_);
    take_out(t);
}

void Schedule::take_out(Timed& t) noexcept {
    if (!t.is_linked()) return;
    set_.erase(set_.iterator_to(t));
    t.scheduled_.store(false, std::memory_order_release);  // the last word: it may be gone now
}

void Schedule::stop() {
    boost::system::error_code ignored;
    const std::lock_guard hold(mutex_);  // other threads still set and cancel
    timer_.close(ignored);
}

void Schedule::arm(boot_clock::time_point due) noexcept {
    armed_ = due;
    if (!timer_.is_open()) return;  // stopped; the number may be another's descriptor by now
    const auto ns = std::max<std::int64_t>(due.time_since_epoch().count(), 1);
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Schedule::wait() {
    timer_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                      [this](const boost::system::error_code& ec) {
                          if (!ec) run();
                      });
}

void Schedule::run() {
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto n =
        ::read(timer_.native_handle(), &expirations, sizeof expirations);
    const auto now = boot_clock::now();
    std::vector<std::shared_ptr<Timed>> due;
    {
        const std::lock_guard hold(mutex_);
        armed_ = boot_clock::time_point::max();
        while (!set_.empty() && set_.begin()->due_ <= now) {
            Timed& t = *set_.begin();
            // One whose last owner is just letting go has nothing left to do.
            if (auto alive = t.weak_from_this().lock()) due.push_back(std::move(alive));
            take_out(t);
        }
        if (!set_.empty()) arm(set_.begin()->due_);
    }
    for (const auto& t : due)
        t->fire(now);
    wait();
}

}  // namespace holdfast
