#include "stream_socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {
namespace {

using Clock = StreamSocket::Clock;

// Waits until the socket is ready for `events` or `end` is reached; false in the latter case.
bool wait_ready(int fd, short events, Clock::time_point end) {
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
        const long long rest = left > 0 ? left : 0;
        timespec time{};
        time.tv_sec = rest / 1'000'000'000;
        time.tv_nsec = rest % 1'000'000'000;
        pollfd entry{fd, events, 0};
        const int ready = ::ppoll(&entry, 1, &time, nullptr);
        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

int connected_socket(const std::string& host, std::uint16_t port, Clock::time_point end) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        throw LabError(fmt::format("cannot resolve {}: {}", host, ::gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    std::string reason = "no address";
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        const int fd = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            reason = std::strerror(errno);
            continue;
        }
        int result = ::connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
        if (result == EINPROGRESS) {
            socklen_t size = sizeof result;
            if (!wait_ready(fd, POLLOUT, end)) {
                result = ETIMEDOUT;
            } else {
                ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size);
            }
        }
        if (result == 0) {
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return fd;
        }
        ::close(fd);
        reason = std::strerror(result);
    }
    throw LabError(fmt::format("cannot connect to {}:{}: {}", host, port, reason));
}

}  // namespace

StreamSocket::StreamSocket(const std::string& host, std::uint16_t port,
                           std::chrono::nanoseconds cap)
    : peer_(fmt::format("{}:{}", host, port)),
      fd_(connected_socket(host, port, Clock::now() + cap)) {}

StreamSocket::~StreamSocket() {
    ::close(fd_);
}

void StreamSocket::write(std::string_view bytes) {
    const auto end = Clock::now() + default_cap;
    while (!bytes.empty()) {
        const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            if (!wait_ready(fd_, POLLOUT, end)) {
                throw LabError(peer_ + " does not take what is sent");
            }
        } else if (errno != EINTR) {
            throw LabError(
                fmt::format("the connection to {} broke: {}", peer_, std::strerror(errno)));
        }
    }
}

std::string_view StreamSocket::read(char* buffer, std::size_t size, Clock::time_point end) {
    for (;;) {
        const auto count = ::recv(fd_, buffer, size, 0);
        if (count == 0) {
            throw LabError(peer_ + " closed the connection");
        }
        if (count > 0) {
            return {buffer, static_cast<std::size_t>(count)};
        }
        if (errno != EAGAIN && errno != EINTR) {
            throw LabError(
                fmt::format("the connection to {} broke: {}", peer_, std::strerror(errno)));
        }
        if (errno == EAGAIN && !wait_ready(fd_, POLLIN, end)) {
            return {};
        }
    }
}

}  // namespace holdfast::lab
