// A server that answers as a test wants: with errors of its own, or other time-outs. One client,
// one connection at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "acceptor.hpp"

namespace zookeeper_tests {

class FakeServer {
public:
    enum Op : std::int32_t {
        create = 1,
        remove = 2,
        get = 4,
        set = 5,
        list = 8,
        sync = 9,
        create2 = 15,
        create_container = 19
    };

    std::string url() const { return "zookeeper://127.0.0.1:" + std::to_string(acceptor_.port()); }
    /// Ends the present connection.
    void cut();
    int connections() const { return connections_; }

    /// What sessions are granted from the next connection on.
    std::atomic<int> timeout_ms{10'000};
    /// So many of the next requests of that kind are answered with `error` and nothing else.
    void fail(Op, std::int32_t error, int times);
    /// So many are left to fail.
    int left_to_fail();

private:
    using Socket = test_support::Tcp::socket;
    void accepted(Socket&);
    void serve(Socket&);
    std::string answer(std::int32_t xid, std::int32_t op, const std::string& path);
    std::string stat() const;

    std::atomic<int> connections_{0};
    std::mutex mutex_;
    Socket* connection_ = nullptr;
    std::int32_t failing_op_ = 0, error_ = 0;
    int times_ = 0;
    std::map<std::string, std::vector<std::string>> children_;
    std::int64_t zxid_ = 1;
    test_support::Acceptor acceptor_{[this](Socket& s, std::size_t) { accepted(s); }};
};

}  // namespace zookeeper_tests
