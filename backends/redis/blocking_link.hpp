// A connection for one thread at a time: what a lane sends its commands on. The steady state is one
// send and one receive per command and allocates nothing but what hiredis formats.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "codec.hpp"
#include "scripts.hpp"
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

    /// exchange in halves, for who waits for the descriptor himself; connected by ready. post sends
    /// one command and never blocks; false: nothing was sent.
    bool post(Command&, boot_clock::time_point now);
    /// The reply, which lives until the next call. Null without an error: not all of it is there
    /// yet; with one there will be none, and the connection is closed.
    const Reply* take(error_code& why);
    /// Nobody waits for the reply any more: the descriptor becomes readable, and the connection is
    /// of no more use until it is made anew by ready.
    void shut() noexcept;
    /// Negative: not connected, or shut.
    int descriptor() const noexcept { return shut_ ? -1 : fd_; }

private:
    error_code connect(boot_clock::time_point deadline, std::string& detail);
    error_code introduce(boot_clock::time_point deadline, std::string& detail);
    error_code send(boot_clock::time_point deadline);
    const Reply* receive(boot_clock::time_point deadline, error_code& why);
    /// What has been read and not taken; null without an error: not a whole reply.
    const Reply* buffered(error_code& why) noexcept;
    error_code read(int flags) noexcept;
    /// The one reply to a command, or the end of the connection.
    const Reply* only_one(const Reply*, error_code& why) noexcept;
    void limit(std::chrono::nanoseconds left) noexcept;
    /// Closes what is of no more use.
    bool usable(boot_clock::time_point now) noexcept;
    bool stale() noexcept;
    void close() noexcept;

    std::shared_ptr<Shared> shared_;
    int fd_ = -1;
    bool shut_ = false;
    std::chrono::nanoseconds limit_{0};  // as set on the socket
    boot_clock::time_point used_;
    std::unique_ptr<Codec> codec_;
    std::string out_;
    std::array<char, 4096> in_{};
};

}  // namespace holdfast::redis
