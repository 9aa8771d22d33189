// The engine's connection to one node, and what is still owed there.
#pragma once
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/container/small_vector.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "debts.hpp"
#include "nodes.hpp"
#include "requests.hpp"

namespace holdfast::redlock {

/// Engine thread only. Requests go out in the order in which they come and are answered in it. A
/// node that is silent for longer than node_timeout is down: a request gets that answer at once,
/// while the line tries by itself, now and then, whether it is back.
class Line : public std::enable_shared_from_this<Line> {
public:
    Line(asio::any_io_executor, std::shared_ptr<NodeSet>, Node&, tls::Context*);

    struct Request : Ask {
        /// Called once, perhaps inside ask(); without a reply `sent` says whether it may have
        /// acted.
        std::function<void(const Reply*, const error_code& why, bool sent)> done{};
        /// Asked before it is sent after having waited for the connection. Empty: always wanted.
        std::function<bool()> wanted{};
        bool repeated = false;  ///< asked again, since it was late
    };
    /// `patient`: a node that is down is tried now, and waited for.
    void ask(Request, bool patient);
    /// Until send() what is asked waits, to go out in as few calls as can be. Nothing else may be
    /// waited for in between.
    void gather() noexcept { gathering_ = true; }
    void send();

    /// Sends this release as soon as the node can be reached, at the latest until the key is
    /// gone by itself. A request that may still arrive until `again`: then it is done once more.
    void owe(Ask release, boot_clock::time_point again, boot_clock::time_point until);
    /// Tries at once to give back what is owed.
    void hurry();
    /// Something is owed, or asked and not answered, that may be settled in a moment.
    bool owes() const noexcept;
    /// Somebody found the node down or slow: find out, now and then.
    void look();
    void close() noexcept;

private:
    enum class State : std::uint8_t { fresh, opening, proving, ready, broken, down, closed };

    /// One command and its answer: of one request, or of several with the same verb.
    struct Call {
        boost::container::small_vector<Request, 1> requests;
        bool text = false;  // the node has forgotten the script, so it is sent whole
        bool fits(const Reply&) const noexcept;
    };

    void start_open();
    asio::awaitable<void> open(std::shared_ptr<redis::Link> link);
    void opened(const error_code&, const std::string& words);
    void prove();
    void become_ready();
    void post_request(Request);
    void post(Call);
    void flush();
    void start_write();
    void start_read();
    void read(std::size_t bytes);
    void answer(Call, const Reply&);
    void answer(Request, const Reply&);
    void fail(const error_code& why, const std::string& words, bool down);
    void leave_replica();
    void watch_silence();
    void pay();
    void arm_chores();

    asio::any_io_executor executor_;
    const std::shared_ptr<NodeSet> set_;
    Node& node_;
    tls::Context* tls_;
    State state_ = State::fresh;
    bool probing_ = false;  // opening a node that is down: nobody waits for it
    std::shared_ptr<redis::Link> link_;
    std::deque<Call> pending_;
    std::vector<Request> queued_, gathered_;
    Debts owed_;
    std::string out_;
    std::array<char, 16384> in_{};
    bool writing_ = false, watching_ = false, chores_armed_ = false, gathering_ = false;
    bool demoted_ = false;  // it answered that it is a replica
    boot_clock::time_point heard_{}, next_try_{}, chores_due_{}, left_{};
    milliseconds pause_{50};
    asio::steady_timer silence_, chores_;
};

}  // namespace holdfast::redlock
