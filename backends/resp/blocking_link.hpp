// A lane's connection, for one thread at a time. In the steady state each command needs one send
// and one receive, and allocates only what hiredis formats.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "codec.hpp"
#include "script.hpp"
#include "server.hpp"

namespace holdfast::resp {

class BlockingLink {
public:
    explicit BlockingLink(std::shared_ptr<Server> server);
    ~BlockingLink();
    BlockingLink(const BlockingLink&) = delete;
    BlockingLink& operator=(const BlockingLink&) = delete;

    /// Connects by `deadline`, or returns why not. `now`: the present, approximately, to save a
    /// look at the clock. Resolves no names, since that cannot be bounded.
    error_code ready(boot_clock::time_point now, boot_clock::time_point deadline,
                     std::string& detail);
    /// Sends one command and returns its reply, which lives until the next call. Null: there is
    /// none, and the connection is closed. With a script: sends its whole text when the server has
    /// forgotten it.
    const Reply* exchange(Command&, const Script*, boot_clock::time_point now,
                          boot_clock::time_point deadline, error_code& why);

private:
    error_code connect(boot_clock::time_point deadline, std::string& detail);
    error_code introduce(boot_clock::time_point deadline, std::string& detail);
    error_code send(boot_clock::time_point deadline);
    const Reply* receive(boot_clock::time_point deadline, error_code& why);
    error_code read() noexcept;
    /// Its only reply; more than one ends the connection.
    const Reply* only_one(const Reply*, error_code& why) noexcept;
    void limit(std::chrono::nanoseconds left) noexcept;
    bool stale() noexcept;
    void close() noexcept;

    std::shared_ptr<Server> server_;
    int fd_ = -1;
    /// An answer is still to come, for instance after an exception in the exchange. The connection
    /// is then not used again: the next caller would take that answer for its own.
    bool owed_ = false;
    std::chrono::nanoseconds limit_{0};  // as set on the socket
    boot_clock::time_point used_;
    std::unique_ptr<Codec> codec_;
    std::string out_;
    std::array<char, 4096> in_{};
};

}  // namespace holdfast::resp
