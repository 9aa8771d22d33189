#include "lane_link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "errors.hpp"
#include "holdfast/spi/net/socket.hpp"

namespace holdfast::resp {
namespace {

constexpr std::size_t lane_buffer = 64U << 10U;
// A server may have closed a connection that was idle for longer: worth one look before sending.
constexpr milliseconds idle_unchecked{100};

std::string system_words(int code) {
    return error_code(code, boost::system::system_category()).message();
}

}  // namespace

LaneLink::LaneLink(Server& s, std::shared_ptr<tls::Context> t)
    : server_(s), context_(std::move(t)) {}

void LaneLink::close(spi::Failure why) {
    if (state_ == State::ready) server_.doubt();
    socket_.close();
    state_ = State::closed;
    pending_ = 0;
    out_.clear();
    sent_ = 0;
    why_ = std::move(why);
}

void LaneLink::broke() {
    const bool early = state_ != State::ready;  // later the end of a connection says nothing
    std::string words = early || errno == EPROTO ? socket_.failure() : std::string();
    if (!words.empty()) return close({make(Error::tls), place_.text + ": " + std::move(words)});
    if (!early) return close(make(Error::closed));
    words = socket_.after_asking();
    if (words.empty() && state_ == State::securing)
        words = as_without_tls(server_.target);
    else if (context_ == nullptr && !handshake_->answered())
        words = tls::as_with_tls(server_.target.secure);
    words = place_.text + ": " + make(Error::closed).message() + words;
    close({make(Error::closed), std::move(words)});
}

void LaneLink::leave_replica(boot_clock::time_point now) {
    if (state_ == State::ready && left_.due(now)) close(make(Error::read_only));
}

bool LaneLink::connect(boot_clock::time_point now) {
    move_ = server_.moves();  // first: it may move in between
    auto where = server_.reached_for_lane();
    if (!where) return close(make(Error::unresolved)), false;
    place_ = std::move(*where);
    const tcp::endpoint& to = place_.endpoint;
    socket_.assign(spi::net::open_socket(to.protocol()));
    if (!socket_.is_open()) return close({make(Error::refused), system_words(errno)}), false;
    heard_ = now;
    ++generation_;
    used_.clear();
    limit_ = std::chrono::nanoseconds(0);
    state_ = State::connecting;
    const auto size = static_cast<socklen_t>(to.size());
    if (::connect(socket_.descriptor(), to.data(), size) == 0) return connected(now);
    if (errno == EINPROGRESS || errno == EINTR) return true;
    close({make(Error::refused), system_words(errno)});
    return false;
}

bool LaneLink::connected(boot_clock::time_point now) {
    if (context_ == nullptr) return greet(now);
    socket_.secure(*context_, place_.host);
    heard_ = now;
    state_ = State::securing;
    return shake_hands(now);
}

bool LaneLink::shake_hands(boot_clock::time_point now) {
    const int wanted = socket_.shake_hands();
    if (wanted == 0) return greet(now);
    shaking_ = static_cast<short>(wanted);
    if (wanted < 0) broke();
    return wanted > 0;
}

bool LaneLink::greet(boot_clock::time_point now) {
    codec_ = std::make_unique<Codec>(lane_buffer);
    handshake_ = std::make_unique<Handshake>();
    out_.clear();
    sent_ = 0;
    if (spi::Failure failed = handshake_->begin(server_, out_))
        return close(std::move(failed)), false;
    heard_ = now;
    state_ = State::greeting;
    flush();
    return state_ != State::closed;
}

void LaneLink::check(boot_clock::time_point now) {
    if (socket_.is_open() && left()) close(make(Error::closed));
    const bool idle = now - std::exchange(checked_, now) > idle_unchecked;
    if (!socket_.is_open() || !idle || state_ == State::securing) return;
    char byte = 0;
    const ssize_t n = socket_.receive(&byte, 1, MSG_PEEK | MSG_DONTWAIT);
    // Bytes that are no answer do no harm: TLS 1.3 sends tickets for later sessions.
    const bool quiet = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (quiet || (n > 0 && pending_ > 0)) return;
    close(make(Error::closed));
}

void LaneLink::drain(boot_clock::time_point now) {
    if (state_ != State::ready || pending_ == 0) return;
    advance(now);
    std::uint64_t ignored = 0;
    while (next(ignored) != nullptr) {
    }
}

void LaneLink::put(const Command& c, std::uint64_t number, boot_clock::time_point now) {
    if (pending_ == most_pending) return close(make(Error::no_answer));
    c.encode(out_);  // throws, or queues all of it
    if (pending_ == 0) heard_ = now;
    numbers_[(first_ + pending_) % most_pending] = number;
    ++pending_;
    server_.requests.fetch_add(1, std::memory_order_relaxed);
    flush();
}

bool LaneLink::first_use(const Script& script) {
    if (std::find(used_.begin(), used_.end(), &script) != used_.end()) return false;
    used_.push_back(&script);
    return true;
}

void LaneLink::flush() {
    while (sent_ < out_.size()) {
        const ssize_t n = socket_.send(out_.data() + sent_, out_.size() - sent_);
        if (n >= 0) {
            sent_ += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            return broke();
        }
    }
    out_.clear();
    sent_ = 0;
}

short LaneLink::events() const noexcept {
    if (state_ == State::closed) return 0;
    if (state_ == State::connecting) return POLLOUT;
    if (state_ == State::securing) return shaking_;
    short wanted = 0;
    if (waits()) wanted |= POLLIN;
    if (sent_ < out_.size()) wanted |= POLLOUT;
    return wanted;
}

bool LaneLink::advance(boot_clock::time_point now) {
    if (state_ == State::connecting) {
        if (const int failed = spi::net::connect_error(socket_.descriptor()); failed != 0)
            close({make(Error::refused), system_words(failed)});
        else
            connected(now);
        return false;
    }
    if (state_ == State::securing) return shake_hands(now), false;
    if (sent_ < out_.size()) flush();
    if (state_ == State::closed || !read(MSG_DONTWAIT, now) || state_ != State::greeting)
        return false;
    for (auto next = codec_->next(); next != Codec::Next::more; next = codec_->next()) {
        if (next == Codec::Next::broken || handshake_->left() == 0)
            return close(make(Error::protocol)), false;
        if (spi::Failure failed = handshake_->take(codec_->reply(), server_))
            return close(std::move(failed)), false;
    }
    if (handshake_->left() > 0) return false;
    state_ = State::ready;
    return true;
}

// False: nothing to read, or closed.
bool LaneLink::read(int flags, boot_clock::time_point now) {
    bool any = false;
    do {
        const ssize_t n = socket_.receive(in_.data(), in_.size(), flags);
        if (n < 0 && errno == EINTR) return true;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return any;
        if (n <= 0) return broke(), false;
        heard_ = now;
        if (!codec_->feed({in_.data(), static_cast<std::size_t>(n)}))
            return close(make(Error::protocol)), false;
        any = true;
        flags |= MSG_DONTWAIT;
    } while (socket_.has_pending());
    return true;
}

const Reply* LaneLink::next(std::uint64_t& number) {
    if (state_ != State::ready) return nullptr;
    const auto next = codec_->next();
    if (next == Codec::Next::more) return nullptr;
    if (next == Codec::Next::broken || pending_ == 0) {
        close(make(Error::protocol));
        return nullptr;
    }
    number = numbers_[first_];
    first_ = (first_ + 1) % most_pending;
    --pending_;
    return &codec_->reply();
}

// --- waiting for one server
// --------------------------------------------------------------------------------------

spi::Failure LaneLink::open(boot_clock::time_point& now, boot_clock::time_point deadline) {
    // An answer may still be to come, for instance after an exception in the exchange. The next
    // caller would take it for its own.
    if (socket_.is_open() && waits()) close(make(Error::closed));
    check(now);
    if (state_ == State::ready) return {};
    connect(now);
    while (state_ != State::closed && state_ != State::ready) {
        const bool heard = wait(events(), deadline);
        now = boot_clock::now();
        if (heard)
            advance(now);
        else
            close(make(Error::no_answer));
    }
    if (state_ == State::ready && !block()) close({make(Error::refused), system_words(errno)});
    if (state_ == State::ready) return {};
    spi::Failure failed = why_;
    if (failed.why == make(Error::refused)) failed.detail = place_.text + ": " + failed.detail;
    return failed;
}

const Reply* LaneLink::exchange(Command& c, const Script* script, boot_clock::time_point now,
                                boot_clock::time_point deadline) {
    for (bool whole = false;; whole = true) {
        put(c, 0, now);
        const Reply* r = receive(now, deadline);
        if (r != nullptr && left()) {
            // The engine has renewed what it knew of: nobody would ask the new server for this.
            close(make(Error::closed));
            r = nullptr;
        }
        if (r == nullptr) return nullptr;
        if (r->is(Reply::Type::error) && from_reply(r->text) == make(Error::read_only))
            leave_replica(now);
        if (whole || script == nullptr || !forgotten(*r)) return r;
        with_text(c, *script);
        now = boot_clock::now();
    }
}

const Reply* LaneLink::receive(boot_clock::time_point now, boot_clock::time_point deadline) {
    while (state_ == State::ready && sent_ < out_.size()) {
        if (!wait(POLLOUT, deadline)) return close(make(Error::no_answer)), nullptr;
        flush();
    }
    for (bool first = true; state_ == State::ready; first = false) {
        std::uint64_t number = 0;
        if (const Reply* const r = next(number)) {
            if (codec_->next() != Codec::Next::reply) return r;
            close(make(Error::protocol));  // more than was asked for
        }
        if (state_ != State::ready) break;
        if (!first) now = boot_clock::now();
        if (!first && now >= deadline) return close(make(Error::no_answer)), nullptr;
        limit(deadline - now);
        if (!read(0, now) && state_ == State::ready) close(make(Error::no_answer));
    }
    return nullptr;
}

bool LaneLink::wait(short wanted, boot_clock::time_point deadline) noexcept {
    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - boot_clock::now()).count();
        if (left <= 0) return false;
        pollfd p{socket_.descriptor(), wanted, 0};
        const int n = ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
        if (n > 0 || (n < 0 && errno != EINTR)) return true;
    }
}

bool LaneLink::block() noexcept {
    const int flags = ::fcntl(socket_.descriptor(), F_GETFL);
    return flags >= 0 && ::fcntl(socket_.descriptor(), F_SETFL, flags & ~O_NONBLOCK) == 0;
}

void LaneLink::limit(std::chrono::nanoseconds left) noexcept {
    // A system call, so only when it changes by much.
    left = std::max<std::chrono::nanoseconds>(left, milliseconds(1));
    const auto change = left > limit_ ? left - limit_ : limit_ - left;
    if (change < left / 8) return;
    timeval t{};
    t.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    t.tv_usec = static_cast<suseconds_t>(left.count() % 1'000'000'000 / 1000);
    ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    limit_ = left;
}

}  // namespace holdfast::resp
