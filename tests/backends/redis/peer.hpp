// A peer that speaks Redis and whose answers a test decides: what a real server says only in states
// that are hard to bring about.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <istream>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace redis_tests {

class Peer {
public:
    using Command = std::vector<std::string>;
    /// Answers each command with what `answer` gives, without the last line break: "+OK", "-ERR".
    /// It is called from several threads.
    explicit Peer(std::function<std::string(const Command&)> answer) : answer_(std::move(answer)) {
        accepting_ = std::jthread([this] { accept(); });
    }
    ~Peer() {
        boost::system::error_code ignored;
        {
            const std::lock_guard hold(mutex_);
            ended_ = true;
            for (Socket& s : sockets_)
                s.shutdown(Socket::shutdown_both, ignored);
        }
        Socket last(io_);  // wakes the accepting thread
        last.connect(acceptor_.local_endpoint(), ignored);
        accepting_.join();
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

private:
    using Socket = boost::asio::ip::tcp::socket;

    void accept() {
        std::list<std::jthread> threads;
        for (;;) {
            boost::system::error_code failed;
            Socket one = acceptor_.accept(failed);
            const std::lock_guard hold(mutex_);
            if (ended_ || failed) break;
            sockets_.push_back(std::move(one));
            threads.emplace_back([this, &s = sockets_.back()] { serve(s); });
        }
    }
    void serve(Socket& s) {
        try {
            boost::asio::streambuf in;
            std::istream words(&in);
            const auto line = [&] {
                boost::asio::read_until(s, in, "\r\n");
                std::string text;
                std::getline(words, text);
                text.pop_back();
                return text;
            };
            for (;;) {
                Command command;
                for (auto n = std::stoul(line().substr(1)); n > 0; --n) {
                    const auto size = std::stoul(line().substr(1)) + 2;
                    if (in.size() < size)
                        boost::asio::read(s, in, boost::asio::transfer_at_least(size - in.size()));
                    std::string word(size, '\0');
                    words.read(word.data(), static_cast<std::streamsize>(size));
                    command.push_back(word.substr(0, size - 2));
                }
                boost::asio::write(s, boost::asio::buffer(answer_(command) + "\r\n"));
            }
        } catch (const std::exception&) {  // the connection has ended
        }
    }

    const std::function<std::string(const Command&)> answer_;
    boost::asio::io_context io_;
    boost::asio::ip::tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
    std::mutex mutex_;
    bool ended_ = false;
    std::list<Socket> sockets_;
    std::jthread accepting_;
};

}  // namespace redis_tests
