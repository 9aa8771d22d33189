// A member of etcd by itself: the keys of the simulation's etcd behind gRPC, whose answers a test
// may delay, change or replace. Its leases end when the test says so.
#pragma once
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "etcd_store.hpp"
#include "methods.hpp"

namespace holdfast::test {

namespace rpc = etcd::rpc;
namespace method = etcd::method;

/// What the members of one cluster share. Lock `mutex` to use the rest.
struct FakeCluster {
    std::mutex mutex;
    sim::EtcdStore store;
    std::uint64_t id = 17;
    std::size_t members = 3;  ///< so many does its list have
};

/// Any thread may call any member.
class FakeMember {
public:
    struct Reply {
        int status = 0;          ///< gRPC's
        std::string words = {};  ///< of the status
        std::string body = {};   ///< the message
        std::string http = {};   ///< status of an answer that is not gRPC's; empty: it is
        std::string type = {};   ///< of that answer
    };
    /// Nullopt: the store answers.
    using Instead =
        std::function<std::optional<Reply>(std::string_view path, const std::string& message)>;

    explicit FakeMember(std::shared_ptr<FakeCluster>);
    ~FakeMember();
    FakeMember(const FakeMember&) = delete;
    FakeMember& operator=(const FakeMember&) = delete;

    std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
    /// What it answers from now on; called without any mutex.
    void instead(Instead);
    /// How long the answers to a path take.
    void delay(std::string_view path, std::chrono::milliseconds);
    /// Takes requests and answers none, or goes on.
    void hang(bool);
    /// Says this to whatever comes, and ends the connection; empty: it speaks gRPC.
    void say(std::string bytes);
    /// Ends every connection: it takes no more calls, or says nothing before.
    void leave(bool says_so);
    /// Resets so many of the calls that come as ones that it did not look at.
    void refuse_calls(std::size_t);
    /// A watch says that it was created, and no more, unless it ends at once.
    enum class Watch : std::uint8_t { silent, ends, refused };
    void watch(Watch);
    std::size_t requests(std::string_view path) const;
    std::size_t connections() const;
    /// Of a path that the store knows; the error answer if it refuses.
    Reply ask(std::string_view path, const std::string& message);
    template <class Message>
    Reply ask(std::string_view path, const Message& message) {
        return ask(path, message.SerializeAsString());
    }

    static Reply refusal(int status, const std::string& words) { return {status, words}; }

private:
    class Connection;
    void accept();
    void serve(const std::shared_ptr<Connection>&, std::int32_t call, std::string_view path,
               const std::string& message);
    void answer(const std::shared_ptr<Connection>&, std::int32_t call, const Reply&);

    std::shared_ptr<FakeCluster> cluster_;
    mutable std::mutex mutex_;
    bool hangs_ = false;
    std::string says_;
    std::size_t refused_calls_ = 0, connections_ = 0;
    Instead instead_;
    Watch watch_ = Watch::silent;
    std::map<std::string, std::chrono::milliseconds, std::less<>> delays_;
    std::map<std::string, std::size_t, std::less<>> requests_;
    // --- by its thread only
    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_;
    std::vector<std::weak_ptr<Connection>> all_;
    std::vector<std::function<void()>> held_back_;
    std::thread thread_;
};

}  // namespace holdfast::test
