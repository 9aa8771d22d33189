// Writing without waiting.
#include "outbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <thread>

namespace holdfast::cli {
namespace {

constexpr std::size_t most_bytes = 64 * 1024;
constexpr milliseconds write_again{5};

}  // namespace

Outbox::Outbox(int fd, std::function<std::string(std::size_t)> gap)
    : fd_(fd), gap_(std::move(gap)) {
    struct stat facts {};
    if (fd_ < 0 || ::fstat(fd_, &facts) != 0) return;
    way_ = Way::plain;
    if (S_ISSOCK(facts.st_mode)) way_ = Way::socket;
    if (!S_ISFIFO(facts.st_mode) && ::isatty(fd_) != 1) return;
    // O_NONBLOCK belongs to what the descriptor refers to, which others share, the command among
    // them: it is set on one of our own. Without permission for that, one looks before each write.
    own_.reset(::open(fmt::format("/proc/self/fd/{}", fd_).c_str(),
                      O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    way_ = own_ ? Way::own : errno == ENXIO ? Way::plain : Way::polled;
}

/// As write(2): -1 with EAGAIN when it would wait.
long Outbox::write_some(std::string_view text) {
    switch (way_) {
        case Way::none:
            break;
        case Way::plain:
            return ::write(fd_, text.data(), text.size());
        case Way::own:
            return ::write(own_.get(), text.data(), text.size());
        case Way::socket:
            return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        case Way::polled: {
            pollfd room{fd_, POLLOUT, 0};
            if (::poll(&room, 1, 0) > 0)
                return ::write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
            errno = EAGAIN;
            return -1;
        }
    }
    errno = EBADF;
    return -1;
}

bool Outbox::add(std::string lines) {
    if (way_ == Way::none) return true;
    bytes_ += lines.size();
    lines_.push_back(std::move(lines));
    // The oldest go, since the last ones tell the end; one that was begun stays whole.
    while (bytes_ > most_bytes && lines_.size() > 2) {
        const auto oldest = lines_.begin() + (written_ > 0 ? 1 : 0);
        bytes_ -= oldest->size();
        lines_.erase(oldest);
        ++dropped_;
    }
    return flush();
}

bool Outbox::flush() {
    while (!lines_.empty()) {
        const bool gap = written_ == 0 && dropped_ > 0;
        const std::string line = gap ? gap_(dropped_) : lines_.front().substr(written_);
        const long n = write_some(line);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) return true;
        if (n < 0) {
            way_ = Way::none;
            lines_.clear();
            return false;
        }
        const auto some = static_cast<std::size_t>(n);
        if (gap) {
            dropped_ = 0;
            if (some == line.size()) continue;
            lines_.push_front(line);
            bytes_ += line.size();
        }
        written_ += some;
        if (written_ < lines_.front().size()) continue;
        bytes_ -= lines_.front().size();
        written_ = 0;
        lines_.pop_front();
    }
    return true;
}

std::size_t Outbox::drain(milliseconds cap) {
    const auto end = boot_clock::now() + cap;
    while (flush() && !lines_.empty() && boot_clock::now() < end)
        std::this_thread::sleep_for(write_again);
    const std::size_t left = lines_.size() + dropped_;
    lines_.clear();
    bytes_ = written_ = dropped_ = 0;
    return left;
}

}  // namespace holdfast::cli
