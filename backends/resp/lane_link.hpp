// One of a lane's connections, without a coroutine. A thread may write to several and then wait for
// any answer, or exchange one command with one server in two system calls.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "../tls/socket.hpp"
#include "codec.hpp"
#include "handshake.hpp"
#include "replica.hpp"
#include "script.hpp"
#include "server.hpp"

namespace holdfast::resp {

/// Not thread-safe. Answers come in the order of the requests, each with the number of its request.
class LaneLink {
public:
    /// The server outlives it. Null: without TLS.
    LaneLink(Server&, std::shared_ptr<tls::Context>);
    LaneLink(const LaneLink&) = delete;
    LaneLink& operator=(const LaneLink&) = delete;

    enum class State : std::uint8_t { closed, connecting, securing, greeting, ready };
    State state() const noexcept { return state_; }
    bool ready() const noexcept { return state_ == State::ready; }
    Server& server() noexcept { return server_; }

    /// Begins to connect. False: refused, or no address yet (the engine resolves names).
    bool connect(boot_clock::time_point now);
    /// Before it is used: notices that the server has closed a connection that was idle.
    void check(boot_clock::time_point now);
    /// Sends one command. Only when ready.
    void put(const Command&, std::uint64_t number, boot_clock::time_point now);
    /// The events for poll(); 0: none.
    short events() const noexcept;
    int descriptor() const noexcept { return socket_.descriptor(); }
    /// True once for each script and connection: the whole script is then sent, since the answer
    /// that the server has forgotten it might come after the end of the round.
    bool first_use(const Script&);
    /// After poll(): connects, writes and reads what is possible. State closed: it broke, see
    /// why(). True when it has just become ready.
    bool advance(boot_clock::time_point now);
    /// The next answer that has arrived, and the number of its request; null: none. Valid until the
    /// next call.
    const Reply* next(std::uint64_t& number);
    /// Reads and drops answers without a waiting round.
    void drain(boot_clock::time_point now);
    bool overdue(boot_clock::time_point now, milliseconds patience) const noexcept {
        return state_ == State::ready && pending_ > 0 && now >= heard_ + patience;
    }
    bool waits() const noexcept { return pending_ > 0 || state_ != State::ready; }
    /// Since when it owes an answer and nothing has come.
    boot_clock::time_point quiet_since() const noexcept { return heard_; }
    void close(spi::Failure);
    /// The server is a replica: closes, unless it did so a moment ago.
    void leave_replica(boot_clock::time_point now);
    /// Changes with each connect. Requests of one generation are executed in their order.
    unsigned generation() const noexcept { return generation_; }
    /// The count of the server's moves when it connected.
    unsigned move() const noexcept { return move_; }
    const spi::Failure& why() const noexcept { return why_; }

    // --- for a lane with one server: these wait

    /// Ready by `deadline`, without an answer to come; or why not. `now`: the present,
    /// approximately, to save a look at the clock; looked at anew where it has waited.
    spi::Failure open(boot_clock::time_point& now, boot_clock::time_point deadline);
    /// Sends one command and returns its reply, which lives until the next call. Null: there is
    /// none, or the server has moved meanwhile, and the connection is closed; why() says more. With
    /// a script: sends its whole text when the server has forgotten it. In the steady state one
    /// send and one receive, which allocate nothing.
    const Reply* exchange(Command&, const Script*, boot_clock::time_point now,
                          boot_clock::time_point deadline);

private:
    /// The server has moved since it connected.
    bool left() const noexcept { return move_ != server_.moves(); }
    bool connected(boot_clock::time_point now);
    bool shake_hands(boot_clock::time_point now);
    bool greet(boot_clock::time_point now);
    void flush();
    void broke();
    bool read(int flags, boot_clock::time_point now);
    bool block() noexcept;
    void limit(std::chrono::nanoseconds left) noexcept;
    bool wait(short wanted, boot_clock::time_point deadline) noexcept;
    const Reply* receive(boot_clock::time_point now, boot_clock::time_point deadline);

    static constexpr unsigned most_pending = 64;
    Server& server_;
    const std::shared_ptr<tls::Context> context_;
    State state_ = State::closed;
    tls::Socket socket_;
    Server::Reached place_;  // where it leads to
    short shaking_ = 0;      // the event that a handshake of TLS waits for
    std::string out_;
    std::size_t sent_ = 0;
    std::unique_ptr<Codec> codec_;
    std::unique_ptr<Handshake> handshake_;
    std::vector<const Script*> used_;
    std::array<std::uint64_t, most_pending> numbers_{};  // a ring
    unsigned first_ = 0, pending_ = 0, generation_ = 0, move_ = 0;
    boot_clock::time_point heard_{}, checked_{};
    LeftReplica left_;
    std::chrono::nanoseconds limit_{0};  // of a receive that waits; 0: none waits yet
    spi::Failure why_;
    std::array<char, 4096> in_{};
};

}  // namespace holdfast::resp
