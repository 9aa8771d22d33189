// A connection for one thread at a time: what a lane sends its commands on. The steady state is one
// send and one receive per command and allocates nothing but what hiredis formats.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "codec.hpp"
#include "script.hpp"
#include "shared.hpp"

namespace holdfast::redis {

class BlockingLink {
public:
    explicit BlockingLink(std::shared_ptr<Shared> shared);
    ~BlockingLink();
    BlockingLink(const BlockingLink&) = delete;
    BlockingLink& operator=(const BlockingLink&) = delete;

    /// Connected, at the latest at `deadline`, or why not. `now` is about the present: it saves
    /// looking at the clock. Names are not resolved here, since that cannot be bounded.
    error_code ready(boot_clock::time_point now, boot_clock::time_point deadline,
                     std::string& detail);
    /// Sends one command and receives its reply, which lives until the next call; null when there
    /// is none, and then the connection is closed. With a script: once more with the whole text
    /// when the server has forgotten it.
    const Reply* exchange(Command&, const Script*, boot_clock::time_point now,
                          boot_clock::time_point deadline, error_code& why);

private:
    error_code connect(boot_clock::time_point deadline, std::string& detail);
    error_code introduce(boot_clock::time_point deadline, std::string& detail);
    error_code send(boot_clock::time_point deadline);
    const Reply* receive(boot_clock::time_point deadline, error_code& why);
    error_code read() noexcept;
    /// The one reply to a command, or the end of the connection.
    const Reply* only_one(const Reply*, error_code& why) noexcept;
    void limit(std::chrono::nanoseconds left) noexcept;
    bool stale() noexcept;
    void close() noexcept;

    std::shared_ptr<Shared> shared_;
    int fd_ = -1;
    /// An answer is still to come. Whatever ended the exchange, an exception for instance: the next
    /// caller must not take that answer for his own, so the connection is not used again.
    bool owed_ = false;
    std::chrono::nanoseconds limit_{0};  // as set on the socket
    boot_clock::time_point used_;
    std::unique_ptr<Codec> codec_;
    std::string out_;
    std::array<char, 4096> in_{};
};

}  // namespace holdfast::redis
