// A plain connection to a Redis server that knows nothing of Holdfast: the lab's own hand on the
// server, and in tests the foreign client next to which Holdfast must behave.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/reply.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// A blocking TCP connection that speaks RESP2, without TLS. A message may be sent with send() and
/// its reply taken later with receive(), in order.
///
/// Thread safety: one thread at a time.
class RedisConnection {
public:
    /// Connects. Errors: LabError when that fails or takes longer than `cap`.
    RedisConnection(const std::string& host, std::uint16_t port,
                    std::chrono::nanoseconds cap = default_cap);
    RedisConnection(RedisConnection&&) noexcept;
    RedisConnection& operator=(RedisConnection&&) noexcept;
    ~RedisConnection();

    /// Sends one command and returns its reply; an error reply is a value.
    /// Errors: LabError when the connection breaks or nothing arrives within `cap`.
    Reply command(const std::vector<std::string>& arguments,
                  std::chrono::nanoseconds cap = default_cap);

    /// Sends one command and waits for nothing. Errors: LabError when the connection is broken.
    void send(const std::vector<std::string>& arguments);

    /// The next reply; nullopt when none is complete within `cap`, after which one may go on
    /// waiting. Errors: LabError when the connection is broken or closed by the other side.
    [[nodiscard]] std::optional<Reply> receive(std::chrono::nanoseconds cap = default_cap);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
