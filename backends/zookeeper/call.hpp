// One request to a server, and its answer.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/spi/net/gate.hpp"

namespace holdfast::zookeeper {

namespace asio = boost::asio;
template <class T>
using awaitable = asio::awaitable<T>;

/// Filled in by the client library's callback. `then` runs inside that callback, in the order of
/// the answers, and may send further requests.
struct Call {
    bool done = false;
    int rc = 0;                         ///< the client's return code
    std::string text;                   ///< a created node's path, a node's data
    std::vector<std::string> children;  ///< of a list
    std::int64_t czxid = 0, mzxid = 0, session = 0;
    std::int32_t version = 0;
    milliseconds modified{};  ///< since 1970, by the leader's clock
    std::function<void(Call&)> then;
    spi::net::Gate gate;

    void finish(int code) {
        done = true;
        rc = code;
        if (then) std::exchange(then, {})(*this);
        gate.open();
    }
};
using CallPtr = std::shared_ptr<Call>;

/// True when it was answered by the deadline, whatever the answer.
inline awaitable<bool> finished(asio::any_io_executor executor, CallPtr call,
                                boot_clock::time_point deadline) {
    while (!call->done && boot_clock::now() < deadline) {
        auto wait = call->gate.wait(executor, deadline);
        co_await std::move(wait);
    }
    co_return call->done;
}

}  // namespace holdfast::zookeeper
