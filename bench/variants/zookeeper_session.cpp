#include "variants/zookeeper_session.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "bench.hpp"
#include "variants/zookeeper_library.hpp"

namespace holdfast::bench {

namespace {

constexpr milliseconds cap{10000};

std::string words(int code) {
    return "bare ZooKeeper: " + std::string(zerror(code));
}

/// What the library wants of the kernel for one session.
struct Interest {
    pollfd fd{-1, 0, 0};
    milliseconds left{};
};

Interest interest_of(zhandle_t* handle) {
    Interest result;
    int fd = -1, wants = 0;
    timeval left{};
    const int code = zookeeper_interest(handle, &fd, &wants, &left);
    result.left = milliseconds(left.tv_sec * 1000 + left.tv_usec / 1000);
    if (code != ZOK || fd < 0) return result;  // the next turn tries to connect again
    result.fd.fd = fd;
    result.fd.events = static_cast<short>(((wants & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                                          ((wants & ZOOKEEPER_WRITE) != 0 ? POLLOUT : 0));
    return result;
}

void process(zhandle_t* handle, short happened) {
    int events = ((happened & (POLLIN | POLLHUP | POLLERR)) != 0 ? ZOOKEEPER_READ : 0) |
                 ((happened & POLLOUT) != 0 ? ZOOKEEPER_WRITE : 0);
    while (events != 0 && zookeeper_process(handle, events) == ZOK)
        events = ZOOKEEPER_READ;
}

}  // namespace

bool ZooKeeperAnswer::no_node() const {
    return code == ZNONODE;
}
bool ZooKeeperAnswer::exists_already() const {
    return code == ZNODEEXISTS;
}
bool ZooKeeperAnswer::disconnected() const {
    return code == ZCONNECTIONLOSS || code == ZSESSIONEXPIRED || code == ZOPERATIONTIMEOUT;
}

struct ZooKeeperSession::Asked {
    Take take;
    static void answer(const void* data, ZooKeeperAnswer answer) {
        const std::unique_ptr<const Asked> asked(static_cast<const Asked*>(data));
        if (answer.code != ZCLOSING) asked->take(answer);
    }
};

struct ZooKeeperSession::Library {
    static void event(zhandle_t*, int type, int, const char* path, void* context) {
        auto& session = *static_cast<ZooKeeperSession*>(context);
        if (type != ZOO_SESSION_EVENT && session.on_event) session.on_event(path);
    }
    static void nothing(int code, const void* data) {
        ZooKeeperAnswer answer;
        answer.code = code;
        Asked::answer(data, std::move(answer));
    }
    static void text(int code, const char* value, const void* data) {
        ZooKeeperAnswer answer;
        answer.code = code;
        if (value != nullptr) answer.path = value;
        Asked::answer(data, std::move(answer));
    }
    static void stat(int code, const Stat* stat, const void* data) {
        ZooKeeperAnswer answer;
        answer.code = code;
        if (code == ZOK && stat != nullptr) {
            answer.czxid = stat->czxid;
            answer.owner = stat->ephemeralOwner;
            answer.created_ms = stat->ctime;
        }
        Asked::answer(data, std::move(answer));
    }
    static void value(int code, const char*, int, const Stat* stat_of, const void* data) {
        stat(code, stat_of, data);
    }
    static void list(int code, const String_vector* strings, const void* data) {
        ZooKeeperAnswer answer;
        answer.code = code;
        if (code == ZOK && strings != nullptr)
            answer.names.assign(strings->data, strings->data + strings->count);
        Asked::answer(data, std::move(answer));
    }
};

ZooKeeperSession::ZooKeeperSession(const std::string& servers, milliseconds timeout) {
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));  // it writes to stderr by itself
    handle_ = zookeeper_init2(servers.c_str(), &Library::event, static_cast<int>(timeout.count()),
                              nullptr, this, ZOO_NO_LOG_CLIENTENV, [](const char*) {});
    if (handle_ == nullptr) throw SelfCheck("bare ZooKeeper: no handle");
    zoo_set_servers_resolution_delay(handle_, -1);
    turn_until(
        {this}, [&] { return zoo_state(handle_) == ZOO_CONNECTED_STATE; }, cap,
        "a ZooKeeper session");
}

ZooKeeperSession::~ZooKeeperSession() {
    zookeeper_close(handle_);
}

long long ZooKeeperSession::id() const {
    return zoo_client_id(handle_)->client_id;
}

bool ZooKeeperSession::expired() const {
    return is_unrecoverable(handle_) != ZOK;
}

ZooKeeperSession::Asked* ZooKeeperSession::asked(Take take) {
    ++requests_;
    return std::make_unique<Asked>(Asked{std::move(take)}).release();
}

void ZooKeeperSession::start(int code) {
    if (code != ZOK) throw SelfCheck(words(code));
}

void ZooKeeperSession::create(const std::string& path, Kind kind, Take take) {
    const int flags = kind == Kind::persistent  ? 0
                      : kind == Kind::ephemeral ? ZOO_EPHEMERAL
                                                : ZOO_EPHEMERAL | ZOO_SEQUENCE;
    start(zoo_acreate(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, flags, &Library::text,
                      asked(std::move(take))));
}
void ZooKeeperSession::remove(const std::string& path, Take take) {
    start(zoo_adelete(handle_, path.c_str(), -1, &Library::nothing, asked(std::move(take))));
}
void ZooKeeperSession::exists(const std::string& path, Watch watch, Take take) {
    start(zoo_aexists(handle_, path.c_str(), watch == Watch::yes, &Library::stat,
                      asked(std::move(take))));
}
void ZooKeeperSession::get(const std::string& path, Watch watch, Take take) {
    start(zoo_aget(handle_, path.c_str(), watch == Watch::yes, &Library::value,
                   asked(std::move(take))));
}
void ZooKeeperSession::children(const std::string& path, Watch watch, Take take) {
    start(zoo_aget_children(handle_, path.c_str(), watch == Watch::yes, &Library::list,
                            asked(std::move(take))));
}

ZooKeeperSession::Answer ZooKeeperSession::wait_for(const std::function<void(Take)>& ask) {
    // Shared: an answer that comes after the cap must find a place.
    const auto answer = std::make_shared<std::pair<bool, Answer>>();
    ask([answer](const Answer& a) { *answer = {true, a}; });
    turn_until(
        {this}, [&] { return answer->first; }, cap, "an answer of ZooKeeper");
    return answer->second;
}

ZooKeeperSession::Answer ZooKeeperSession::create(const std::string& path, Kind kind) {
    return wait_for([&](Take take) { create(path, kind, std::move(take)); });
}
ZooKeeperSession::Answer ZooKeeperSession::remove(const std::string& path) {
    return wait_for([&](Take take) { remove(path, std::move(take)); });
}
ZooKeeperSession::Answer ZooKeeperSession::exists(const std::string& path, Watch watch) {
    return wait_for([&](Take take) { exists(path, watch, std::move(take)); });
}
ZooKeeperSession::Answer ZooKeeperSession::get(const std::string& path, Watch watch) {
    return wait_for([&](Take take) { get(path, watch, std::move(take)); });
}
ZooKeeperSession::Answer ZooKeeperSession::children(const std::string& path, Watch watch) {
    return wait_for([&](Take take) { children(path, watch, std::move(take)); });
}

void ZooKeeperSession::leave() {
    left_ = true;
    const Interest interest = interest_of(handle_);
    if (interest.fd.fd >= 0) ::shutdown(interest.fd.fd, SHUT_RDWR);
}

std::uint64_t ZooKeeperSession::requests(std::span<ZooKeeperSession* const> all) {
    std::uint64_t sum = 0;
    for (const ZooKeeperSession* session : all)
        sum += session->requests_;
    return sum;
}

void ZooKeeperSession::turn(milliseconds wait) {
    turn({this}, wait);
}

void ZooKeeperSession::turn(const std::vector<ZooKeeperSession*>& all, milliseconds wait) {
    std::vector<pollfd> fds;
    fds.reserve(all.size());
    for (const ZooKeeperSession* session : all) {
        Interest interest;
        if (!session->left_ && !session->expired()) {
            interest = interest_of(session->handle_);
            wait = std::min(wait, interest.left);
        }
        fds.push_back(interest.fd);
    }
    if (poll(fds.data(), fds.size(), static_cast<int>(std::max<long>(0, wait.count()))) <= 0)
        return;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (fds[i].revents != 0) process(all[i]->handle_, fds[i].revents);
}

void ZooKeeperSession::settle() {
    turn_until(
        {this}, [&] { return expired() || zoo_state(handle_) == ZOO_CONNECTED_STATE; }, cap,
        "a session that is connected or over");
}

void turn_until(const std::vector<ZooKeeperSession*>& all, const std::function<bool()>& done,
                milliseconds limit, const std::string& what) {
    const auto end = Clock::now() + limit;
    while (!done()) {
        if (Clock::now() >= end)
            throw SelfCheck(what + " did not come within " + std::to_string(limit.count()) + " ms");
        ZooKeeperSession::turn(all, milliseconds(20));
    }
}

}  // namespace holdfast::bench
