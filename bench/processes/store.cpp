#include "processes/store.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace holdfast::bench {

namespace {

// How the two stores are called in a history.
constexpr std::uint64_t open_store = 1, fenced_store = 2;

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw std::runtime_error("the socket's path is too long: " + path);
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

void send_line(int fd, const std::string& text) {
    const std::string line = text + "\n";
    // A worker that is gone is noticed by read_from(); a short line never fills the buffer.
    [[maybe_unused]] const auto sent = send(fd, line.data(), line.size(), MSG_NOSIGNAL);
}

}  // namespace

Store::Store(const std::filesystem::path& socket) : path_(socket.string()) {
    const auto address = address_of(path_);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0 || bind(listener_, as_sockaddr(address), sizeof address) != 0 ||
        listen(listener_, 1024) != 0 || pipe2(wake_, O_CLOEXEC) != 0)
        fail("the bench's store");
    thread_ = std::thread([this] { serve(); });
}

Store::~Store() {
    close(wake_[1]);
    thread_.join();
    close(wake_[0]);
    close(listener_);
    for (const auto& [fd, peer] : peers_)
        close(fd);
    unlink(path_.c_str());
}

void Store::reset(long long number, std::size_t parties) {
    const std::lock_guard hold(mutex_);
    number_ = number;
    cells_.clear();
    parties_ = parties;
    at_gate_.clear();
    events_.clear();
    holder_.clear();
    fence_.reset();
    start_ = Clock::now();
}

void Store::record(const std::filesystem::path& file, const std::string& name) {
    const std::lock_guard hold(mutex_);
    recorder_.emplace(file, "store");
    name_ = recorder_->name(name);
}

long long Store::number() const {
    const std::lock_guard hold(mutex_);
    return number_;
}

long long Store::cell(const std::string& name) const {
    const std::lock_guard hold(mutex_);
    const auto found = cells_.find(name);
    return found == cells_.end() ? 0 : found->second;
}

void Store::put(const std::string& name, long long value) {
    const std::lock_guard hold(mutex_);
    cells_[name] = value;
}

long long Store::sum(const std::string& prefix) const {
    const std::lock_guard hold(mutex_);
    long long all = 0;
    for (auto it = cells_.lower_bound(prefix); it != cells_.end() && it->first.starts_with(prefix);
         ++it)
        all += it->second;
    return all;
}

std::vector<StoreEvent> Store::events() const {
    const std::lock_guard hold(mutex_);
    return events_;
}

double Store::now_ms() const {
    const std::lock_guard hold(mutex_);
    return millis_since(start_);
}

void Store::serve() {
    for (;;) {
        std::vector<pollfd> fds{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
        for (const auto& [fd, peer] : peers_)
            fds.push_back({fd, POLLIN, 0});
        if (poll(fds.data(), fds.size(), -1) < 0) continue;
        if (fds[0].revents != 0) return;
        if (fds[1].revents != 0) {
            const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd >= 0) peers_.emplace(fd, Peer{});
        }
        for (std::size_t i = 2; i < fds.size(); ++i) {
            if (fds[i].revents == 0 || read_from(fds[i].fd)) continue;
            peers_.erase(fds[i].fd);
            close(fds[i].fd);
        }
    }
}

bool Store::read_from(int fd) {
    char buffer[4096];
    const auto got = recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    std::string& in = peers_[fd].in;
    in.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end; (end = in.find('\n')) != std::string::npos; in.erase(0, end + 1))
        answer(fd, in.substr(0, end));
    return true;
}

StoreEvent& Store::add(StoreEvent::Kind kind, std::string who) {
    StoreEvent& event = events_.emplace_back();
    event.kind = kind;
    event.at_ms = millis_since(start_);
    event.who = std::move(who);
    return event;
}

void Store::open_gate() {
    if (at_gate_.size() < parties_) return;
    for (const int fd : at_gate_)
        send_line(fd, "go");
    at_gate_.clear();
}

void Store::see_token(StoreEvent& event, std::uint64_t writer) {
    event.fence_accepted = fence_.write(FencingToken{event.token}, [] {});
    // Without a token there is nothing for a fence to check.
    if (recorder_ && event.token != 0)
        recorder_->write(name_, fenced_store, event.token, writer, event.fence_accepted, true);
}

void Store::answer(int fd, const std::string& line) {
    std::istringstream words(line);
    std::string verb, who;
    words >> verb;
    const std::lock_guard hold(mutex_);
    if (verb == "wait") {
        at_gate_.push_back(fd);
        return open_gate();
    }
    if (verb == "stay") return;
    std::string reply = "ok";
    if (verb == "get") {
        reply = std::to_string(number_);
    } else if (verb == "set") {
        std::uint64_t writer = 0;
        words >> number_ >> writer;
        if (recorder_) recorder_->write(name_, open_store, 0, writer, true, false);
    } else if (verb == "read") {
        words >> who;
        reply = std::to_string(cells_[who]);
    } else if (verb == "put" || verb == "add") {
        long long value = 1;
        std::uint64_t writer = 0;
        words >> who;
        if (verb == "put") words >> value;
        words >> writer;
        cells_[who] = verb == "put" ? value : cells_[who] + 1;
        if (recorder_) recorder_->write(name_, open_store, 0, writer, true, false);
    } else if (verb == "sold") {
        words >> who;
        add(StoreEvent::Kind::sold, who);
    } else if (verb == "holds") {
        words >> who;
        StoreEvent& event = add(StoreEvent::Kind::holds, who);
        std::uint64_t holder = 0;
        words >> event.token >> holder;
        holder_ = who;
        see_token(event, holder);
    } else if (verb == "lost") {
        words >> who;
        add(StoreEvent::Kind::lost, who);
    } else if (verb == "write") {
        words >> who;
        StoreEvent& event = add(StoreEvent::Kind::write, who);
        std::uint64_t writer = 0;
        words >> event.token >> event.valid >> writer;
        event.stale = !holder_.empty() && holder_ != who;
        if (recorder_) recorder_->write(name_, open_store, event.token, writer, true, false);
        see_token(event, writer);
    } else {
        reply = "what?";
    }
    send_line(fd, reply);
}

StoreClient::StoreClient(const std::string& path) {
    const auto address = address_of(path);
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0 || connect(fd_, as_sockaddr(address), sizeof address) != 0) fail("the store");
}

StoreClient::~StoreClient() {
    close(fd_);
}

std::string StoreClient::ask(const std::string& line) {
    send_line(fd_, line);
    for (;;) {
        const auto end = in_.find('\n');
        if (end != std::string::npos) {
            std::string answer = in_.substr(0, end);
            in_.erase(0, end + 1);
            return answer;
        }
        char buffer[256];
        const auto got = recv(fd_, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) throw std::runtime_error("the store is gone");
        in_.append(buffer, static_cast<std::size_t>(got));
    }
}

}  // namespace holdfast::bench
