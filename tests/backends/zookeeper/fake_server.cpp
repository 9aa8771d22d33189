#include "fake_server.hpp"

#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>

namespace zookeeper_tests {
namespace {

constexpr std::int64_t session = 0x1234;

std::int32_t number_at(const std::string& bytes, std::size_t at) {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < 4; ++i)
        n = n << 8U | static_cast<unsigned char>(bytes.at(at + i));
    return static_cast<std::int32_t>(n);
}

std::string number(std::int64_t n, int bytes) {
    std::string out;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        out += static_cast<char>(n >> shift & 0xFF);
    return out;
}

/// A text, or a frame: its length and what follows.
std::string text(const std::string& s) {
    return number(static_cast<std::int64_t>(s.size()), 4) + s;
}

}  // namespace

void FakeServer::cut() {
    const std::lock_guard hold(mutex_);
    boost::system::error_code ignored;
    if (connection_ != nullptr) connection_->shutdown(Socket::shutdown_both, ignored);
}

void FakeServer::fail(Op op, std::int32_t error, int times) {
    const std::lock_guard hold(mutex_);
    failing_op_ = op;
    error_ = error;
    times_ = times;
}

int FakeServer::left_to_fail() {
    const std::lock_guard hold(mutex_);
    return times_;
}

void FakeServer::accepted(Socket& socket) {
    {
        const std::lock_guard hold(mutex_);
        connection_ = &socket;
    }
    ++connections_;
    try {
        serve(socket);
    } catch (const std::exception&) {  // the client has gone, or was cut
    }
    const std::lock_guard hold(mutex_);
    if (connection_ == &socket) connection_ = nullptr;
}

void FakeServer::serve(Socket& socket) {
    const auto read = [&](std::size_t n) {
        std::string bytes(n, '\0');
        boost::asio::read(socket, boost::asio::buffer(bytes));
        return bytes;
    };
    const auto next = [&] { return read(static_cast<std::size_t>(number_at(read(4), 0))); };
    const auto say = [&](const std::string& bytes) {
        boost::asio::write(socket, boost::asio::buffer(bytes));
    };
    next();
    say(text(number(0, 4) + number(timeout_ms, 4) + number(session, 8) +
             text(std::string(16, 'p')) + number(0, 1)));
    for (;;) {
        const std::string bytes = next();
        const std::int32_t xid = number_at(bytes, 0), op = number_at(bytes, 4);
        std::string path;
        if (bytes.size() >= 12 && xid >= 0)
            path = bytes.substr(12, static_cast<std::size_t>(number_at(bytes, 8)));
        say(answer(xid, op, path));
    }
}

std::string FakeServer::stat() const {
    const std::string versions(12, '\0');
    return number(zxid_, 8) + number(zxid_, 8) + number(0, 8) + number(0, 8) + versions +
           number(session, 8) + number(0, 8) + number(zxid_, 8);
}

std::string FakeServer::answer(std::int32_t xid, std::int32_t op, const std::string& path) {
    const std::lock_guard hold(mutex_);
    const auto with = [&](std::int32_t error, const std::string& body) {
        return text(number(xid, 4) + number(zxid_, 8) + number(error, 4) + body);
    };
    if (times_ > 0 && op == failing_op_) {
        --times_;
        return with(error_, {});
    }
    const auto slash = path.rfind('/');
    const std::string parent = path.substr(0, slash == path.npos ? 0 : slash);
    const std::string node = path.substr(slash == path.npos ? 0 : slash + 1);
    switch (op) {
        case create:
        case create_container:
            return with(0, text(path) + (op == create ? std::string() : stat()));
        case create2: {
            std::array<char, 16> digits{};
            std::snprintf(digits.data(), digits.size(), "%010d", static_cast<int>(++zxid_));
            children_[parent].push_back(node + digits.data());
            return with(0, text(path + digits.data()) + stat());
        }
        case remove:
            std::erase(children_[parent], node);
            return with(0, {});
        case get:
            return with(0, text("") + stat());
        case set:
            ++zxid_;
            return with(0, stat());
        case list: {
            std::string all = number(static_cast<std::int64_t>(children_[path].size()), 4);
            for (const std::string& child : children_[path])
                all += text(child);
            return with(0, all);
        }
        case sync:
            return with(0, text(path));
        default:  // a ping, the end of the session
            return with(0, {});
    }
}

}  // namespace zookeeper_tests
