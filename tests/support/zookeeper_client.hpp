// A plain blocking ZooKeeper client for tests: what an operator, or another library, might do
// behind Holdfast's back. One call at a time.
#pragma once
#include <poll.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <zookeeper/zookeeper.h>
#pragma GCC diagnostic pop

namespace holdfast::testing {

class ZooKeeperClient {
public:
    /// Connects. Errors: std::runtime_error when that takes longer than 10 s.
    explicit ZooKeeperClient(const std::string& servers, int timeout_ms = 10'000,
                             const std::string& digest = {}) {
        zoo_set_debug_level(static_cast<ZooLogLevel>(0));
        zh_ = zookeeper_init(servers.c_str(), nullptr, timeout_ms, nullptr, nullptr, 0);
        if (zh_ == nullptr) throw std::runtime_error("zookeeper_init");
        if (!digest.empty())
            zoo_add_auth(zh_, "digest", digest.data(), static_cast<int>(digest.size()), nullptr,
                         nullptr);
        for (int i = 0; i < 1000 && zoo_state(zh_) != ZOO_CONNECTED_STATE; ++i)
            pump(10);
        if (zoo_state(zh_) == ZOO_CONNECTED_STATE) return;
        zookeeper_close(zh_);
        throw std::runtime_error("not connected");
    }
    ZooKeeperClient(const ZooKeeperClient&) = delete;
    ZooKeeperClient& operator=(const ZooKeeperClient&) = delete;
    ~ZooKeeperClient() { zookeeper_close(zh_); }

    struct Answer {
        int rc = ZOPERATIONTIMEOUT;
        std::string text;
        std::vector<std::string> children;
        Stat stat{};
        bool done = false;
    };
    Answer create(const std::string& path, const std::string& data, int mode) {
        return ask([&](void* to) {
            return zoo_acreate2(
                zh_, path.c_str(), data.data(), static_cast<int>(data.size()), &ZOO_OPEN_ACL_UNSAFE,
                mode,
                [](int rc, const char* made, const Stat* s, const void* into) {
                    Answer& a = answer(into);
                    if (rc == ZOK && made != nullptr) a.text = made;
                    finish(a, rc, s);
                },
                to);
        });
    }
    Answer remove(const std::string& path) {
        return ask([&](void* to) {
            return zoo_adelete(
                zh_, path.c_str(), -1,
                [](int rc, const void* into) { finish(answer(into), rc, nullptr); }, to);
        });
    }
    Answer set(const std::string& path, const std::string& data) {
        return ask([&](void* to) {
            return zoo_aset(
                zh_, path.c_str(), data.data(), static_cast<int>(data.size()), -1,
                [](int rc, const Stat* s, const void* into) { finish(answer(into), rc, s); }, to);
        });
    }
    /// What everybody may do there: ZOO_PERM_ALL, or less.
    Answer allow(const std::string& path, int permissions) {
        ACL one{permissions, ZOO_ANYONE_ID_UNSAFE};
        const ACL_vector all{1, &one};
        return ask([&](void* to) {
            return zoo_aset_acl(
                zh_, path.c_str(), -1, const_cast<ACL_vector*>(&all),
                [](int rc, const void* into) { finish(answer(into), rc, nullptr); }, to);
        });
    }
    Answer get(const std::string& path) {
        return ask([&](void* to) {
            return zoo_aget(
                zh_, path.c_str(), 0,
                [](int rc, const char* value, int size, const Stat* s, const void* into) {
                    Answer& a = answer(into);
                    if (rc == ZOK && size > 0) a.text.assign(value, static_cast<std::size_t>(size));
                    finish(a, rc, s);
                },
                to);
        });
    }
    Answer sync(const std::string& path) {
        return ask([&](void* to) {
            return zoo_async(
                zh_, path.c_str(),
                [](int rc, const char*, const void* into) { finish(answer(into), rc, nullptr); },
                to);
        });
    }
    Answer children(const std::string& path) {
        return ask([&](void* to) {
            return zoo_aget_children2(
                zh_, path.c_str(), 0,
                [](int rc, const String_vector* all, const Stat* s, const void* into) {
                    Answer& a = answer(into);
                    if (rc == ZOK && all != nullptr)
                        a.children.assign(all->data, all->data + all->count);
                    finish(a, rc, s);
                },
                to);
        });
    }
    std::int64_t session() const { return zoo_client_id(zh_)->client_id; }
    int state() const { return zoo_state(zh_); }
    /// Lets the client library work for at most that long.
    void pump(int ms) {
        int fd = -1, interest = 0;
        timeval tv{};
        zookeeper_interest(zh_, &fd, &interest, &tv);
        pollfd p{fd,
                 static_cast<short>(((interest & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                                    ((interest & ZOOKEEPER_WRITE) != 0 ? POLLOUT : 0)),
                 0};
        ::poll(&p, fd < 0 ? 0 : 1, ms);
        const int events = ((p.revents & (POLLIN | POLLHUP | POLLERR)) != 0 ? ZOOKEEPER_READ : 0) |
                           ((p.revents & (POLLOUT | POLLHUP | POLLERR)) != 0 ? ZOOKEEPER_WRITE : 0);
        if (events != 0) zookeeper_process(zh_, events);
    }

private:
    static Answer& answer(const void* into) {
        return *static_cast<Answer*>(const_cast<void*>(into));
    }
    static void finish(Answer& a, int rc, const Stat* s) {
        a.rc = rc;
        if (rc == ZOK && s != nullptr) a.stat = *s;
        a.done = true;
    }
    Answer ask(const std::function<int(void*)>& send) {
        auto* a = new Answer;  // outlives a call that is given up
        const int rc = send(a);
        if (rc != ZOK) {
            a->rc = rc;
            a->done = true;
        }
        for (int i = 0; i < 2000 && !a->done; ++i)
            pump(10);
        Answer out = *a;
        if (a->done) delete a;
        return out;
    }

    zhandle_t* zh_ = nullptr;
};

}  // namespace holdfast::testing
