// A peer that speaks Redis and whose answers a test decides: what a real server says only in states
// that are hard to bring about.
#pragma once
#include <boost/asio/completion_condition.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "acceptor.hpp"

namespace redis_tests {

class Peer {
public:
    using Command = std::vector<std::string>;
    /// Answers each command with what `answer` gives, without the last line break: "+OK", "-ERR".
    /// It is called from several threads.
    explicit Peer(std::function<std::string(const Command&)> answer) : answer_(std::move(answer)) {}
    std::uint16_t port() const { return acceptor_.port(); }

private:
    void serve(test_support::Tcp::socket& s) const {
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
    }

    const std::function<std::string(const Command&)> answer_;
    test_support::Acceptor acceptor_{
        [this](test_support::Tcp::socket& s, std::size_t) { serve(s); }};
};

}  // namespace redis_tests
