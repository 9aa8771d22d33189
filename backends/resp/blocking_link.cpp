#include "blocking_link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "errors.hpp"
#include "handshake.hpp"
#include "holdfast/spi/net/socket.hpp"

namespace holdfast::resp {
namespace {

constexpr std::size_t most_of_lane = 64U << 10U;
// A server may have closed a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};

}  // namespace

BlockingLink::BlockingLink(std::shared_ptr<Server> server) : server_(std::move(server)) {}
BlockingLink::~BlockingLink() {
    close();
}

void BlockingLink::close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    owed_ = false;
}

bool BlockingLink::stale() noexcept {
    char byte = 0;
    const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

error_code BlockingLink::ready(boot_clock::time_point now, boot_clock::time_point deadline,
                               std::string& detail) {
    if (fd_ >= 0 && (owed_ || (now - used_ > idle_unchecked && stale()))) close();
    used_ = now;
    if (fd_ >= 0) return {};
    owed_ = true;  // until all of the handshake is answered
    error_code ec = connect(deadline, detail);
    if (!ec) ec = introduce(deadline, detail);
    if (ec) close();
    owed_ = false;
    return ec;
}

error_code BlockingLink::connect(boot_clock::time_point deadline, std::string& detail) {
    const Target& o = server_->target;
    const auto where = server_->reached();
    if (!where) return make(Error::unresolved);  // the engine finds out first
    fd_ = spi::net::open_socket(where->protocol());
    if (fd_ < 0) {
        detail = error_code(errno, boost::system::system_category()).message();
        return make(Error::refused);
    }
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
            failed = spi::net::connect_error(fd_);
        }
    }
    if (failed != 0) {
        detail = o.display + ": " + error_code(failed, boost::system::system_category()).message();
        return make(Error::refused);
    }
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) != 0) return make(Error::refused);
    limit_ = std::chrono::nanoseconds(0);
    codec_ = std::make_unique<Codec>(most_of_lane);
    return {};
}

error_code BlockingLink::introduce(boot_clock::time_point deadline, std::string& detail) {
    Handshake handshake;
    out_.clear();
    error_code ec = handshake.begin(*server_, out_, detail);
    // A server that hangs accepts connections all the same, and never answers the first word.
    limit(deadline - boot_clock::now());
    if (!ec) ec = send(deadline);
    out_.clear();
    while (!ec && handshake.left() > 0) {
        limit(deadline - boot_clock::now());
        const Reply* r = receive(deadline, ec);
        if (r != nullptr) ec = handshake.take(*r, *server_, detail);
    }
    // More than was asked for: it would be taken for the answer to the next command.
    if (!ec && codec_->next() != Codec::Next::more) ec = make(Error::protocol);
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

error_code BlockingLink::read() noexcept {
    const ssize_t n = ::recv(fd_, in_.data(), in_.size(), 0);
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
        const auto next = codec_->next();
        if (next == Codec::Next::reply) return &codec_->reply();
        if (next == Codec::Next::broken) {
            why = make(Error::protocol);
            return nullptr;
        }
        if (!first) {
            const auto left = deadline - boot_clock::now();
            why = make(Error::no_answer);
            if (left <= left.zero()) return nullptr;
            limit(left);
        }
        why = read();
        if (why) return nullptr;
    }
}

const Reply* BlockingLink::only_one(const Reply* r, error_code& why) noexcept {
    if (r != nullptr && codec_->next() == Codec::Next::reply) {
        why = make(Error::protocol);  // more than was asked for
        r = nullptr;
    }
    // A server that has become a replica is left: the address may lead to the primary by now.
    const bool demoted =
        r != nullptr && r->is(Reply::Type::error) && from_reply(r->text) == make(Error::read_only);
    if (r == nullptr || demoted) close();
    if (r != nullptr) why = {};
    owed_ = false;
    return r;
}

const Reply* BlockingLink::exchange(Command& c, const Script* script, boot_clock::time_point now,
                                    boot_clock::time_point deadline, error_code& why) {
    for (bool whole = false;; whole = true) {
        out_.clear();
        c.encode(out_);
        server_->requests.fetch_add(1, std::memory_order_relaxed);
        limit(deadline - now);
        owed_ = true;
        why = send(deadline);
        const Reply* r = only_one(why ? nullptr : receive(deadline, why), why);
        if (r == nullptr) return nullptr;
        if (whole || script == nullptr || !forgotten(*r)) return r;
        with_text(c, *script);
        now = boot_clock::now();
    }
}

}  // namespace holdfast::resp
