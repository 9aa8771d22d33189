#include "blocking_link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>

#include "errors.hpp"
#include "handshake.hpp"
#include "link.hpp"

namespace holdfast::redis {
namespace {

constexpr std::size_t most_buffered = 64U << 10U;
// A server may have closed a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};

}  // namespace

BlockingLink::BlockingLink(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
BlockingLink::~BlockingLink() {
    close();
}

void BlockingLink::close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    shut_ = false;
}

void BlockingLink::shut() noexcept {
    shut_ = true;
    ::shutdown(fd_, SHUT_RDWR);
}

bool BlockingLink::stale() noexcept {
    char byte = 0;
    const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

bool BlockingLink::usable(boot_clock::time_point now) noexcept {
    if (shut_ || (fd_ >= 0 && now - used_ > idle_unchecked && stale())) close();
    used_ = now;
    return fd_ >= 0;
}

error_code BlockingLink::ready(boot_clock::time_point now, boot_clock::time_point deadline,
                               std::string& detail) {
    if (usable(now)) return {};
    error_code ec = connect(deadline, detail);
    if (!ec) ec = introduce(deadline, detail);
    if (ec) close();
    return ec;
}

error_code BlockingLink::connect(boot_clock::time_point deadline, std::string& detail) {
    const Options& o = shared_->options;
    auto where = shared_->reached();
    if (!where) {
        error_code named;
        const auto address = asio::ip::make_address(o.host, named);
        if (named) return make(Error::unresolved);  // the engine finds out first
        where.emplace(address, o.port);
    }
    fd_ = ::socket(where->protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) {
        detail = error_code(errno, boost::system::system_category()).message();
        return make(Error::refused);
    }
    prepare_socket(fd_);
    int failed = 0;
    if (::connect(fd_, where->data(), static_cast<socklen_t>(where->size())) != 0) {
        failed = errno;
        if (failed == EINPROGRESS || failed == EINTR) {
            for (;;) {
                const auto left =
                    std::chrono::ceil<milliseconds>(deadline - boot_clock::now()).count();
                if (left <= 0) return make(Error::no_answer);
                pollfd p{fd_, POLLOUT, 0};
                const int n = ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
                if (n < 0 && errno != EINTR) break;
                if (n > 0) break;
            }
            socklen_t size = sizeof failed;
            if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = errno;
        }
    }
    if (failed != 0) {
        detail = o.display + ": " + error_code(failed, boost::system::system_category()).message();
        return make(Error::refused);
    }
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) != 0) return make(Error::refused);
    limit_ = std::chrono::nanoseconds(0);
    codec_ = std::make_unique<Codec>(most_buffered);
    return {};
}

error_code BlockingLink::introduce(boot_clock::time_point deadline, std::string& detail) {
    Handshake handshake;
    out_.clear();
    error_code ec = handshake.begin(*shared_, out_, detail);
    // A server that hangs accepts connections all the same, and never answers the first word.
    limit(deadline - boot_clock::now());
    if (!ec) ec = send(deadline);
    out_.clear();
    while (!ec && handshake.left() > 0) {
        limit(deadline - boot_clock::now());
        const Reply* r = receive(deadline, ec);
        if (r != nullptr) ec = handshake.take(*r, *shared_, detail);
    }
    return ec;
}

void BlockingLink::limit(std::chrono::nanoseconds left) noexcept {
    // Two system calls, so only when it changes by much.
    left = std::max<std::chrono::nanoseconds>(left, milliseconds(1));
    const auto change = left > limit_ ? left - limit_ : limit_ - left;
    if (change < left / 8) return;
    timeval t{};
    t.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    t.tv_usec = static_cast<suseconds_t>(left.count() % 1'000'000'000 / 1000);
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    limit_ = left;
}

error_code BlockingLink::send(boot_clock::time_point deadline) {
    std::size_t done = 0;
    while (done < out_.size()) {
        const ssize_t n = ::send(fd_, out_.data() + done, out_.size() - done, MSG_NOSIGNAL);
        if (n >= 0) {
            done += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return make(Error::no_answer);
        } else if (errno != EINTR) {
            return make(Error::closed);
        }
        if (done < out_.size()) {
            const auto left = deadline - boot_clock::now();
            if (left <= left.zero()) return make(Error::no_answer);
            limit(left);
        }
    }
    return {};
}

const Reply* BlockingLink::buffered(error_code& why) noexcept {
    const auto next = codec_->next();
    why = next == Codec::Next::broken ? make(Error::protocol) : error_code();
    return next == Codec::Next::reply ? &codec_->reply() : nullptr;
}

error_code BlockingLink::read(int flags) noexcept {
    const ssize_t n = ::recv(fd_, in_.data(), in_.size(), flags);
    if (n > 0) {
        const bool taken = codec_->feed({in_.data(), static_cast<std::size_t>(n)});
        return taken ? error_code() : make(Error::protocol);
    }
    if (n < 0 && errno == EINTR) return {};
    const bool late = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return make(late ? Error::no_answer : Error::closed);
}

const Reply* BlockingLink::receive(boot_clock::time_point deadline, error_code& why) {
    for (bool first = true;; first = false) {
        const Reply* r = buffered(why);
        if (r != nullptr || why) return r;
        if (!first) {
            const auto left = deadline - boot_clock::now();
            why = make(Error::no_answer);
            if (left <= left.zero()) return nullptr;
            limit(left);
        }
        why = read(0);
        if (why) return nullptr;
    }
}

const Reply* BlockingLink::only_one(const Reply* r, error_code& why) noexcept {
    if (r != nullptr && codec_->next() == Codec::Next::reply) {
        why = make(Error::protocol);  // more than was asked for
        r = nullptr;
    }
    if (r == nullptr)
        close();
    else
        why = {};
    return r;
}

bool BlockingLink::post(Command& c, boot_clock::time_point now) {
    if (!usable(now)) return false;
    out_.clear();
    c.encode(out_);
    const ssize_t n = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
        close();
        return false;
    }
    shared_->requests.fetch_add(1, std::memory_order_relaxed);
    // A buffer that is full before anything was answered: this one will not be answered either.
    if (static_cast<std::size_t>(n) != out_.size()) shut();
    return true;
}

const Reply* BlockingLink::take(error_code& why) {
    for (;;) {
        const Reply* r = buffered(why);
        if (r != nullptr || why) return only_one(r, why);
        why = read(MSG_DONTWAIT);
        if (why == make(Error::no_answer)) {
            why = {};
            return nullptr;
        }
        if (why) return only_one(nullptr, why);
    }
}

const Reply* BlockingLink::exchange(Command& c, const Script* script, boot_clock::time_point now,
                                    boot_clock::time_point deadline, error_code& why) {
    for (bool whole = false;; whole = true) {
        out_.clear();
        c.encode(out_);
        shared_->requests.fetch_add(1, std::memory_order_relaxed);
        limit(deadline - now);
        why = send(deadline);
        const Reply* r = only_one(why ? nullptr : receive(deadline, why), why);
        if (r == nullptr) return nullptr;
        if (whole || script == nullptr || !forgotten(*r)) return r;
        with_text(c, *script);
        now = boot_clock::now();
    }
}

}  // namespace holdfast::redis
