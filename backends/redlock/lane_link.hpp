// One of a lane's connections: a non-blocking socket, so that one thread can write to all nodes and
// then wait for any answer.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "../resp/handshake.hpp"
#include "nodes.hpp"

namespace holdfast::redlock {

/// Not thread-safe. Answers come in the order of the requests, each with the number of its request.
class LaneLink {
public:
    explicit LaneLink(Node&);
    ~LaneLink();
    LaneLink(const LaneLink&) = delete;
    LaneLink& operator=(const LaneLink&) = delete;

    enum class State : std::uint8_t { closed, connecting, greeting, ready };
    State state() const noexcept { return state_; }
    bool ready() const noexcept { return state_ == State::ready; }
    Node& node() noexcept { return *node_; }

    /// Begins to connect. False: refused, or no address yet (the engine resolves names).
    bool connect(boot_clock::time_point now);
    /// Notices that the node has closed the connection.
    void check();
    /// Sends one command. Only when ready.
    void put(const Command&, std::uint64_t number, boot_clock::time_point now);
    /// The events for poll(); 0: none.
    short events() const noexcept;
    int descriptor() const noexcept { return fd_; }
    /// True once for each script and connection: the whole script is then sent, since the answer
    /// that the node has forgotten it might come after the end of the round.
    bool first_use(const Verb& script);
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
    void close(const error_code& why, std::string words = {});
    /// The node is a replica: closes, at most once a second, since the address may lead to the new
    /// primary by now.
    void leave_replica(boot_clock::time_point now);
    /// Changes with each connect. Requests of one generation are executed in their order.
    unsigned generation() const noexcept { return generation_; }
    const error_code& why() const noexcept { return why_; }
    const std::string& words() const noexcept { return words_; }

private:
    bool greet(boot_clock::time_point now);
    void flush();
    bool read(boot_clock::time_point now);

    static constexpr unsigned most_pending = 64;
    Node* node_;
    State state_ = State::closed;
    int fd_ = -1;
    std::string out_;
    std::size_t sent_ = 0;
    std::unique_ptr<resp::Codec> codec_;
    std::unique_ptr<resp::Handshake> handshake_;
    std::vector<const Verb*> used_;
    std::array<std::uint64_t, most_pending> numbers_{};  // a ring
    unsigned first_ = 0, pending_ = 0, generation_ = 0;
    boot_clock::time_point heard_{}, left_{};
    error_code why_;
    std::string words_;
    std::array<char, 4096> in_{};
};

}  // namespace holdfast::redlock
