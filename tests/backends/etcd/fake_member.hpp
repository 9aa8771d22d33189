// A member of etcd by itself: the keys of the simulation's etcd behind the JSON gateway, whose
// answers a test may delay, change or replace. Its leases end when the test says so.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <condition_variable>
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

namespace holdfast::test {

/// What the members of one cluster share. Lock `mutex` to use the rest.
struct FakeCluster {
    std::mutex mutex;
    sim::EtcdStore store;
    std::string id = "17";
    std::size_t members = 3;  ///< so many does its list have
};

/// Any thread may call any member.
class FakeMember {
public:
    struct Reply {
        unsigned status = 200;
        std::string body = {};
        std::string type = "application/json";
    };
    using Request = boost::json::object;
    /// Nullopt: the store answers.
    using Instead = std::function<std::optional<Reply>(const std::string& path, const Request&)>;

    explicit FakeMember(std::shared_ptr<FakeCluster>);
    ~FakeMember();
    FakeMember(const FakeMember&) = delete;
    FakeMember& operator=(const FakeMember&) = delete;

    std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
    /// What it answers from now on; called without any mutex.
    void instead(Instead);
    /// How long the answers to a path take.
    void delay(const std::string& path, std::chrono::milliseconds);
    /// Takes requests and answers none, or goes on.
    void hang(bool);
    /// A watch says that it was created, and no more, unless it ends at once.
    enum class Watch : std::uint8_t { silent, ends, refused };
    void watch(Watch);
    std::size_t requests(const std::string& path) const;
    /// Of a path that the store knows; the error answer if it refuses.
    Reply ask(const std::string& path, const Request&);

    static Reply refusal(int grpc_code, const std::string& words);

private:
    void accept();
    void serve(boost::asio::ip::tcp::socket&);
    std::string answer(const std::string& path, const std::string& body);
    bool ended() const;

    std::shared_ptr<FakeCluster> cluster_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false, hangs_ = false;
    Instead instead_;
    Watch watch_ = Watch::silent;
    std::map<std::string, std::chrono::milliseconds> delays_;
    std::map<std::string, std::size_t> requests_;
    boost::asio::io_context context_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_;
    std::vector<std::shared_ptr<boost::asio::ip::tcp::socket>> sockets_;
    std::vector<std::thread> threads_;
    std::thread accepting_;
};

}  // namespace holdfast::test
