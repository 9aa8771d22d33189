#include "handle.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <system_error>

#include "client_library.hpp"
#include "errors.hpp"

namespace holdfast::zookeeper {
namespace {

int turns_at_once() noexcept {
    return 256;
}

milliseconds twice(boot_clock::duration time) noexcept {
    return std::chrono::duration_cast<milliseconds>(2 * time);
}

}  // namespace

Handle::Handle(std::shared_ptr<Shared> shared, milliseconds timeout, Listener& listener)
    : shared_(std::move(shared)),
      asked_(timeout),
      listener_(&listener),
      descriptor_(shared_->engine),
      timer_(shared_->engine),
      timeout_(timeout) {}

Handle::~Handle() {
    drop();
}

std::int64_t Handle::session() const noexcept {
    const clientid_t* id = zh_ == nullptr ? nullptr : zoo_client_id(zh_);
    return id == nullptr ? 0 : id->client_id;
}

// --- the loop
// ---------------------------------------------------------------------------------------

milliseconds Handle::connect_limit() const noexcept {
    const auto first = std::min(timeout_ / 3, milliseconds(1000));
    const auto others = static_cast<unsigned>(std::min<std::size_t>(servers_, 2));
    const auto grown = first * (1 + std::min(silences_ / others, 3U));
    return std::max(milliseconds(50), std::min(std::max(grown, twice(latency_)), timeout_ * 2 / 3));
}

boot_clock::duration Handle::answer_limit(boot_clock::time_point now) const {
    // With one server there is nobody else to ask.
    if (servers_ < 2) return timeout_;
    // Where the others are as slow, another connection only costs what was proved on this one.
    const milliseconds most = std::max(milliseconds(50), timeout_ / 4);
    const milliseconds limit = std::min(std::max(milliseconds(700), twice(latency_)), most);
    const auto silence = now - silent_since_;
    const bool change =
        silence < limit || listener_ == nullptr || listener_->outlives_change(twice(silence));
    return change ? limit : most;
}

void Handle::note_latency(boot_clock::duration took) noexcept {
    latency_ = std::max(took, latency_ - latency_ / 16);
}

void Handle::answered(boot_clock::time_point sent) noexcept {
    if (unanswered_ > 0) --unanswered_;
    silent_since_ = boot_clock::now();
    note_latency(silent_since_ - sent);
}

void Handle::turn_soon() {
    if (std::exchange(turn_posted_, true)) return;
    boost::asio::post(shared_->engine, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        self->turn_posted_ = false;
        self->gather(false);
        self->turn(0);
    });
}

void Handle::gather(bool on) noexcept {
    // The library sends each request in two pieces, at once, and each would wake the server.
    if (gathering_ == on || !descriptor_.is_open()) return;
    gathering_ = on;
    const int value = on ? 1 : 0;
    ::setsockopt(descriptor_.native_handle(), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

/// What the client library waits for.
struct Handle::Interest {
    int fd = -1, events = 0;
    timeval left{};
};

int Handle::process(int events, bool& more) {
    int rc = ZOK;
    if (given_up()) rc = purge();
    for (int i = 0; events != 0 && rc == ZOK; ++i) {
        more = i == turns_at_once();
        if (more) break;
        errno = 0;
        rc = zookeeper_process(zh_, events);
        events = ZOOKEEPER_READ;
        if (given_up()) rc = purge();
    }
    return rc == ZNOTHING ? ZOK : rc;
}

int Handle::ask_interest(Interest& next) {
    const auto before = boot_clock::now();
    errno = 0;
    int rc = zookeeper_interest(zh_, &next.fd, &next.events, &next.left);
    // After a round through all servers it waits a sixtieth of the time-out; how long to wait is
    // decided here.
    if (rc == ZOK && next.fd < 0) rc = zookeeper_interest(zh_, &next.fd, &next.events, &next.left);
    if (rc == ZOK && next.fd != fd_) connect_sent_ = before;
    return rc;
}

void Handle::end() {
    drop_descriptor();
    if (std::exchange(over_, true)) return;
    connected_ = false;
    if (listener_ != nullptr)
        listener_->ended(zoo_state(zh_) == ZOO_AUTH_FAILED_STATE ? ZAUTHFAILED : ZSESSIONEXPIRED);
}

void Handle::turn(int events) {
    if (zh_ == nullptr || turning_ || closing_ || over_) return;
    const auto alive = shared_from_this();
    turning_ = true;
    bool more = false;
    int rc = process(events, more);
    int system_error = errno;
    Interest next;
    if (rc == ZOK && !closing_) {
        rc = ask_interest(next);
        system_error = errno;
    }
    turning_ = false;
    if (closing_) return;
    if (is_unrecoverable(zh_) != ZOK) return end();
    if (rc != ZOK) return failed(system_error);
    watch_descriptor(next.fd, next.events);
    auto due = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::seconds(next.left.tv_sec) + std::chrono::microseconds(next.left.tv_usec));
    if (!connected_) {
        const std::chrono::nanoseconds rest = connect_sent_ + connect_limit() - boot_clock::now();
        if (rest <= rest.zero() && fd_ >= 0) {
            trouble_ = {make(Error::no_answer), hosts_text(shared_->options) + ": no answer"};
            ++silences_;
            return cut();
        }
        due = std::min(due, rest);
    } else if (unanswered_ > 0) {
        const auto now = boot_clock::now();
        const std::chrono::nanoseconds rest = silent_since_ + answer_limit(now) - now;
        if (rest <= rest.zero() && !down_) {
            note_latency(now - silent_since_);
            cut();
        }
        due = std::min(due, std::max<std::chrono::nanoseconds>(rest, milliseconds(10)));
    }
    // One that comes earlier is left alone: its turn sees to the rest. So a quick answer costs
    // none.
    if (!timer_armed_ || timer_.expiry() > std::chrono::steady_clock::now() + due) arm_timer(due);
    if (more) turn_soon();
}

bool Handle::given_up() const noexcept {
    return connected_ && zh_ != nullptr && zoo_state(zh_) == ZOO_NOTCONNECTED_STATE;
}

int Handle::purge() {
    // When sending fails inside a request, the library closes the connection but keeps what was on
    // it, to be mixed up with the next one. What clears it is a connection that fails.
    drop_descriptor();
    int fd = -1, interest = 0;
    timeval left{};
    int rc = ZOK;
    for (int i = 0; i < 2 && rc == ZOK && fd < 0; ++i)
        rc = zookeeper_interest(zh_, &fd, &interest, &left);
    if (rc == ZOK && fd >= 0) {
        ::shutdown(fd, SHUT_RDWR);
        for (int i = 0; i < 3 && rc == ZOK; ++i)
            rc = zookeeper_process(zh_, ZOOKEEPER_READ | ZOOKEEPER_WRITE);
    }
    errno = 0;
    return ZCONNECTIONLOSS;
}

void Handle::forget_watches() noexcept {
    // On the next connection the library would set all of them again in one request, and a server
    // refuses one of a megabyte: the session could not come back.
    for (const std::string& path : watches_)
        zoo_aremove_watches(zh_, path.c_str(), ZWATCHTYPE_DATA, &Handle::on_event, this, 1, nullptr,
                            nullptr);
    for (const std::string& path : child_watches_)
        zoo_aremove_watches(zh_, path.c_str(), ZWATCHTYPE_CHILD, &Handle::on_event, this, 1,
                            nullptr, nullptr);
    watches_.clear();
    child_watches_.clear();
}

void Handle::failed(int system_error) {
    drop_descriptor();
    forget_watches();
    down_ = false;
    const bool was = std::exchange(connected_, false);
    if (was && listener_ != nullptr) listener_->disconnected();
    // The first one since it was connected.
    if (seen_ && failures_ == 0) resolve(true);
    if (!was && system_error != 0 && system_error != EAGAIN && system_error != EINPROGRESS) {
        const int shown = system_error == EHOSTDOWN ? ECONNRESET : system_error;
        trouble_ = {make(Error::unreachable),
                    hosts_text(shared_->options) + ": " + std::generic_category().message(shown)};
    }
    ++failures_;
    retry_pending_ = true;
    failed_at_ = boot_clock::now();
    // Every server once without a pause.
    if (failures_ <= servers_) return arm_timer(std::chrono::nanoseconds(0));
    const unsigned round = static_cast<unsigned>((failures_ - servers_) / servers_);
    const milliseconds most(std::min(20LL << std::min(round, 6U), 1000LL));
    arm_timer(some_of(most));
}

void Handle::arm_timer(std::chrono::nanoseconds due) {
    timer_.expires_after(std::max(due, std::chrono::nanoseconds(0)));
    timer_armed_ = true;
    timer_.async_wait([weak = weak_from_this()](error_code ec) {
        const auto self = weak.lock();
        if (ec || !self || self->closing_) return;
        self->timer_armed_ = false;
        if (std::exchange(self->retry_pending_, false)) {
            // Addresses may have changed when nobody answers under the old ones.
            if (self->zh_ == nullptr || self->failures_ % (4 * self->servers_) == 0)
                return self->resolve(false);
        }
        self->turn(0);
    });
}

void Handle::watch_descriptor(int fd, int interest) {
    if (fd != fd_) {
        drop_descriptor();
        if (fd >= 0) {
            ::fcntl(fd, F_SETFD, FD_CLOEXEC);
            // The client library closes its descriptor when it likes; the loop has one of its own.
            const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
            if (own < 0) return;
            descriptor_.assign(own);
            fd_ = fd;
            ++connection_;
        }
    }
    if (fd_ < 0) return;
    if (!reading_) wait_for(false);
    if ((interest & ZOOKEEPER_WRITE) != 0 && !writing_) wait_for(true);
}

void Handle::wait_for(bool write) {
    (write ? writing_ : reading_) = true;
    const auto what = write ? boost::asio::posix::descriptor_base::wait_write
                            : boost::asio::posix::descriptor_base::wait_read;
    descriptor_.async_wait(
        what, [weak = weak_from_this(), write, connection = connection_](error_code ec) {
            const auto self = weak.lock();
            if (ec || !self || self->connection_ != connection || self->closing_) return;
            (write ? self->writing_ : self->reading_) = false;
            self->turn(write ? ZOOKEEPER_WRITE : ZOOKEEPER_READ);
        });
}

void Handle::drop_descriptor() noexcept {
    fd_ = -1;
    ++connection_;
    reading_ = writing_ = gathering_ = false;
    error_code ignored;
    if (descriptor_.is_open()) descriptor_.close(ignored);
}

void Handle::on_event(zhandle_t*, int type, int state, const char* path, void* context) {
    Handle& self = *static_cast<Handle*>(context);
    if (self.listener_ == nullptr) return;
    if (type == ZOO_SESSION_EVENT) return self.session_event(state);
    if (path == nullptr) return;
    if (type != ZOO_CHILD_EVENT) self.watches_.erase(path);
    if (type != ZOO_CHANGED_EVENT) self.child_watches_.erase(path);
    if (type == ZOO_CHILD_EVENT || type == ZOO_CREATED_EVENT)
        self.listener_->children_changed(path);
    if (type == ZOO_DELETED_EVENT) self.listener_->changed(path, true);
    if (type == ZOO_CHANGED_EVENT) self.listener_->changed(path, false);
}

void Handle::session_event(int state) {
    if (state == ZOO_CONNECTED_STATE) {
        connected_ = true;
        down_ = false;
        failures_ = silences_ = 0;
        unanswered_ = 0;
        connected_since_ = boot_clock::now();
        note_latency(connected_since_ - connect_sent_);
        trouble_ = {};
        // Servers may differ in what they grant. What is proved was granted before.
        const milliseconds granted(zoo_recv_timeout(zh_));
        timeout_ = seen_ ? std::min(timeout_, granted) : granted;
        listener_->connected(!std::exchange(seen_, true));
    } else if (connected_) {
        connected_ = false;
        listener_->disconnected();
    }
}

void Handle::hurry() {
    if (!retry_pending_ || connected_ || closing_ || over_) return;
    const auto due = failed_at_ + milliseconds(20) - boot_clock::now();
    arm_timer(due);
}

void Handle::cut() noexcept {
    if (fd_ < 0 || closing_) return;
    down_ = true;
    ::shutdown(fd_, SHUT_RDWR);
    boost::asio::post(shared_->engine, [weak = weak_from_this(), connection = connection_] {
        const auto self = weak.lock();
        if (self && self->connection_ == connection) self->turn(ZOOKEEPER_READ | ZOOKEEPER_WRITE);
    });
}

// --- the end
// ----------------------------------------------------------------------------------------

awaitable<void> Handle::close(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    if (closing_) co_return;
    int fd = -1, interest = 0;
    timeval left{};
    if (zh_ != nullptr && connected_ && fd_ >= 0)
        if (zookeeper_interest(zh_, &fd, &interest, &left) != ZOK) fd = -1;
    closing_ = true;
    timer_.cancel();
    gather(false);
    // zookeeper_close would block for seconds when the server hangs, so its request is sent here
    // and the server's end of the connection awaited without blocking.
    if (fd >= 0 && fd == fd_ && (interest & ZOOKEEPER_WRITE) == 0) {
        constexpr std::array<unsigned char, 12> request{0,    0,    0,    8,    0x7F, 0xFF,
                                                        0xFF, 0xF0, 0xFF, 0xFF, 0xFF, 0xF5};
        const auto sent = ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        bool open = sent == static_cast<ssize_t>(request.size());
        asio::steady_timer limit(shared_->engine, spi::net::steady(deadline));
        limit.async_wait([weak = weak_from_this()](error_code ec) {
            const auto alive = weak.lock();
            error_code ignored;
            if (!ec && alive && alive->descriptor_.is_open()) alive->descriptor_.cancel(ignored);
        });
        if (open) {
            error_code ignored;
            descriptor_.cancel(ignored);
        }
        while (open && boot_clock::now() < deadline) {
            error_code ec;
            auto token = asio::redirect_error(asio::use_awaitable, ec);
            co_await descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read, token);
            std::array<char, 4096> rest{};
            ssize_t n = 0;
            while ((n = ::recv(fd_, rest.data(), rest.size(), MSG_DONTWAIT)) > 0) {
            }
            open = !ec && n < 0 && errno == EAGAIN;
        }
    }
    drop();
}

void Handle::drop() noexcept {
    closing_ = true;
    listener_ = nullptr;
    connected_ = false;
    try {
        timer_.cancel();
    } catch (const std::exception&) {
        // Then they end by themselves.
    }
    if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
    drop_descriptor();
    // With its connection shut down it neither sends nor waits.
    if (zh_ != nullptr) zookeeper_close(std::exchange(zh_, nullptr));
}

}  // namespace holdfast::zookeeper
