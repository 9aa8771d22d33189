#include "watchdog.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>

namespace holdfast::sql {

Watchdog::Guard::Guard(std::shared_ptr<Watchdog> dog, bool spare)
    : dog_(std::move(dog)), spare_(spare) {
    const std::lock_guard hold(dog_->mutex_);
    dog_->guards_.push_back(this);
}

Watchdog::Guard::~Guard() {
    {
        const std::lock_guard hold(dog_->mutex_);
        std::erase(dog_->guards_, this);
    }
    watch(-1);
}

void Watchdog::Guard::watch(int socket) {
    const int copy = socket < 0 ? -1 : ::fcntl(socket, F_DUPFD_CLOEXEC, 3);
    const std::lock_guard hold(mutex_);
    if (socket_ >= 0) ::close(socket_);
    socket_ = copy;
    bitten_ = false;
}

bool Watchdog::Guard::ended() const noexcept {
    pollfd p{socket_, POLLRDHUP, 0};
    return ::poll(&p, 1, 0) != 0;
}

std::optional<char> Watchdog::Guard::unread() const noexcept {
    char byte = 0;
    const auto n = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 1 ? std::optional(byte) : std::nullopt;
}

bool Watchdog::Guard::begin(boot_clock::time_point deadline) noexcept {
    const std::int64_t at = deadline.time_since_epoch().count();
    deadline_.store(at);
    // After the store: either the look under way sees this deadline, or we see when it looks next.
    if (dog_->closing_) return false;
    if (at < dog_->next_.load()) dog_->sooner();
    return true;
}

bool Watchdog::Guard::end() noexcept {
    deadline_.store(never);
    return bitten_;
}

void Watchdog::sooner() {
    const std::lock_guard hold(mutex_);
    if (!timer_) return;
    boost::asio::post(timer_->get_executor(), [self = shared_from_this()] { self->look(); });
}

void Watchdog::look() {
    const std::int64_t now = boot_clock::now().time_since_epoch().count();
    std::int64_t first = never;
    {
        const std::lock_guard hold(mutex_);
        for (Guard* g : guards_) {
            if (g->deadline_.load() > now && !closing_) continue;
            if (g->deadline_.load() == never) continue;
            const std::lock_guard quiet(g->mutex_);
            if (g->deadline_.load() == never) continue;  // just in time
            if (g->bitten_.exchange(true)) continue;
            if (g->socket_ >= 0) ::shutdown(g->socket_, SHUT_RDWR);
        }
        for (;;) {
            first = never;
            for (const Guard* g : guards_)
                if (!g->bitten_) first = std::min(first, g->deadline_.load());
            next_.store(first);
            std::int64_t again = never;
            for (const Guard* g : guards_)
                if (!g->bitten_) again = std::min(again, g->deadline_.load());
            if (again >= first) break;
        }
    }
    if (first == never || closing_ || !timer_) return;
    timer_->expires_after(std::chrono::nanoseconds(std::max<std::int64_t>(first - now, 0)));
    timer_->async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
        if (!ec) self->look();
    });
}

void Watchdog::end_spares() noexcept {
    const std::lock_guard hold(mutex_);
    for (Guard* g : guards_) {
        const std::lock_guard quiet(g->mutex_);
        if (g->spare_ && g->deadline_.load() == never && g->socket_ >= 0)
            ::shutdown(g->socket_, SHUT_RDWR);
    }
}

void Watchdog::close() noexcept {
    closing_ = true;
    look();
    const std::lock_guard hold(mutex_);
    timer_.reset();
}

}  // namespace holdfast::sql
