#include "lane_link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "../resp/errors.hpp"
#include "holdfast/spi/net/socket.hpp"

namespace holdfast::redlock {
namespace {

constexpr std::size_t most_buffered = 64U << 10U;

std::string system_words(int code) {
    return error_code(code, boost::system::system_category()).message();
}

}  // namespace

LaneLink::LaneLink(Node& n) : node_(&n) {}

LaneLink::~LaneLink() {
    if (fd_ >= 0) ::close(fd_);
}

void LaneLink::close(const error_code& why, std::string words) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    state_ = State::closed;
    pending_ = 0;
    out_.clear();
    sent_ = 0;
    why_ = why;
    words_ = std::move(words);
}

void LaneLink::leave_replica(boot_clock::time_point now) {
    if (state_ != State::ready || now - left_ < std::chrono::seconds(1)) return;
    left_ = now;
    close(resp::make(resp::Error::read_only));
}

bool LaneLink::connect(boot_clock::time_point now) {
    const auto where = node_->server->reached();
    if (!where) return close(resp::make(resp::Error::unresolved)), false;
    fd_ = spi::net::open_socket(where->protocol());
    if (fd_ < 0) return close(resp::make(resp::Error::refused), system_words(errno)), false;
    heard_ = now;
    ++generation_;
    used_.clear();
    state_ = State::connecting;
    if (::connect(fd_, where->data(), static_cast<socklen_t>(where->size())) == 0)
        return greet(now);
    if (errno == EINPROGRESS || errno == EINTR) return true;
    close(resp::make(resp::Error::refused), system_words(errno));
    return false;
}

bool LaneLink::greet(boot_clock::time_point now) {
    codec_ = std::make_unique<resp::Codec>(most_buffered);
    handshake_ = std::make_unique<resp::Handshake>();
    out_.clear();
    sent_ = 0;
    std::string words;
    const error_code ec = handshake_->begin(*node_->server, out_, words);
    if (ec) return close(ec, std::move(words)), false;
    heard_ = now;
    state_ = State::greeting;
    flush();
    return state_ != State::closed;
}

void LaneLink::check() {
    if (fd_ < 0) return;
    char byte = 0;
    const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool quiet = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (quiet || (n > 0 && pending_ > 0)) return;
    close(resp::make(resp::Error::closed));
}

void LaneLink::drain(boot_clock::time_point now) {
    if (state_ != State::ready || pending_ == 0) return;
    advance(now);
    std::uint64_t ignored = 0;
    while (next(ignored) != nullptr) {
    }
}

void LaneLink::put(const Command& c, std::uint64_t number, boot_clock::time_point now) {
    if (pending_ == most_pending) return close(resp::make(resp::Error::no_answer));
    c.encode(out_);  // throws, or queues all of it
    if (pending_ == 0) heard_ = now;
    numbers_[(first_ + pending_) % most_pending] = number;
    ++pending_;
    node_->server->requests.fetch_add(1, std::memory_order_relaxed);
    flush();
}

bool LaneLink::first_use(const Verb& script) {
    if (std::find(used_.begin(), used_.end(), &script) != used_.end()) return false;
    used_.push_back(&script);
    return true;
}

void LaneLink::flush() {
    while (sent_ < out_.size()) {
        const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
        if (n >= 0) {
            sent_ += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            return close(resp::make(resp::Error::closed));
        }
    }
    out_.clear();
    sent_ = 0;
}

short LaneLink::events() const noexcept {
    if (state_ == State::closed) return 0;
    if (state_ == State::connecting) return POLLOUT;
    short wanted = 0;
    if (waits()) wanted |= POLLIN;
    if (sent_ < out_.size()) wanted |= POLLOUT;
    return wanted;
}

bool LaneLink::advance(boot_clock::time_point now) {
    if (state_ == State::connecting) {
        if (const int failed = spi::net::connect_error(fd_); failed != 0)
            close(resp::make(resp::Error::refused), system_words(failed));
        else
            greet(now);
        return false;
    }
    if (sent_ < out_.size()) flush();
    if (state_ == State::closed || !read(now) || state_ != State::greeting) return false;
    for (auto next = codec_->next(); next != resp::Codec::Next::more; next = codec_->next()) {
        if (next == resp::Codec::Next::broken || handshake_->left() == 0)
            return close(resp::make(resp::Error::protocol)), false;
        std::string words;
        const error_code ec = handshake_->take(codec_->reply(), *node_->server, words);
        if (ec) return close(ec, std::move(words)), false;
    }
    if (handshake_->left() > 0) return false;
    state_ = State::ready;
    return true;
}

bool LaneLink::read(boot_clock::time_point now) {
    for (;;) {
        const ssize_t n = ::recv(fd_, in_.data(), in_.size(), 0);
        if (n > 0) {
            heard_ = now;
            if (codec_->feed({in_.data(), static_cast<std::size_t>(n)})) return true;
            return close(resp::make(resp::Error::protocol)), false;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n < 0 && errno == EINTR) continue;
        return close(resp::make(resp::Error::closed)), false;
    }
}

const Reply* LaneLink::next(std::uint64_t& number) {
    if (state_ != State::ready) return nullptr;
    const auto next = codec_->next();
    if (next == resp::Codec::Next::more) return nullptr;
    if (next == resp::Codec::Next::broken || pending_ == 0) {
        close(resp::make(resp::Error::protocol));
        return nullptr;
    }
    number = numbers_[first_];
    first_ = (first_ + 1) % most_pending;
    --pending_;
    return &codec_->reply();
}

}  // namespace holdfast::redlock
