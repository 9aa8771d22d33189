// A blocking TCP connection whose waits have a cap, after which one may go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::lab {

class StreamSocket {
public:
    using Clock = std::chrono::steady_clock;
    /// Errors: LabError when that fails or takes longer than `cap`.
    StreamSocket(const std::string& host, std::uint16_t port, std::chrono::nanoseconds cap);
    StreamSocket(const StreamSocket&) = delete;
    StreamSocket& operator=(const StreamSocket&) = delete;
    ~StreamSocket();

    const std::string& peer() const { return peer_; }
    /// Errors: LabError when the connection is broken, or the other side reads nothing.
    void write(std::string_view);
    /// What has come, in `buffer`; empty: nothing did until `end`. Errors: LabError when the
    /// connection is broken or closed by the other side.
    std::string_view read(char* buffer, std::size_t size, Clock::time_point end);

private:
    const std::string peer_;
    const int fd_;
};

}  // namespace holdfast::lab
