// The engine's connection to one node, and what is owed to the node.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <boost/container/small_vector.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../resp/pipeline.hpp"
#include "../resp/replica.hpp"
#include "nodes.hpp"
#include "pending_releases.hpp"
#include "requests.hpp"

namespace holdfast::redlock {

/// Engine thread only. Requests are sent and answered in the order in which they come. A node that
/// is silent for longer than node_timeout is down: requests fail at once, and it is tried now
/// and then whether it is back.
class NodeConnection final : public resp::Pipeline::Asker,
                             public std::enable_shared_from_this<NodeConnection> {
public:
    NodeConnection(asio::any_io_executor, std::shared_ptr<NodeSet>, Node&, tls::Context*);

    struct Request : Ask {
        /// Called once, perhaps inside ask(). Without a reply, `sent` says whether the request may
        /// have acted.
        std::function<void(const Reply*, const error_code& why, bool sent)> done{};
        /// Called before a request is sent that has waited for the connection. Empty: always
        /// wanted.
        std::function<bool()> wanted{};
        bool repeated = false;  ///< the request was repeated, since it was late
    };
    /// `patient`: tries a node that is down now, and waits for it.
    void ask(Request, bool patient);
    /// Collects requests until send(), to send them in as few calls as possible. Do not suspend in
    /// between.
    void gather() noexcept { gathering_ = true; }
    void send();

    /// Sends this release as soon as the node can be reached, until the key has expired. If a
    /// request may still arrive until `again`, repeats it after that.
    void owe(Ask release, boot_clock::time_point again, boot_clock::time_point until);
    /// What may still have arrived with this value has: its release need not be repeated.
    void arrived(const std::string& value) { releases_.arrived(value); }
    /// Tries now to send what is owed.
    void send_now();
    /// Whether something is owed, or asked and unanswered, that may be settled in a moment.
    bool has_pending() const noexcept;
    /// The node was found down or slow: checks it now and then.
    void look();
    /// The node is at another address: closes the connection, unless it leads there.
    void leave();
    void close() noexcept;

private:
    enum class State : std::uint8_t { fresh, opening, proving, ready, broken, down, closed };

    /// One command and its answer: for one request, or several with the same verb.
    struct Call {
        boost::container::small_vector<Request, 1> requests;
        bool text = false;  // the node has forgotten the script, so the whole text is sent
        bool fits(const Reply&) const noexcept;
    };

    void start_open();
    asio::awaitable<void> open(std::shared_ptr<resp::Link> link);
    void opened(std::shared_ptr<resp::Pipeline>);
    void prove();
    void become_ready();
    void post_request(Request);
    void post(Call);
    void flush();
    void heard() override { heard_ = boot_clock::now(); }
    bool take(Reply&) override;
    void settled() override;
    void broke(resp::Error) override;
    void answer(Call, const Reply&);
    void answer(Request, const Reply&);
    void fail(const spi::Failure&, bool down);
    void watch_silence();
    void send_pending();
    void arm_chores();

    asio::any_io_executor executor_;
    const std::shared_ptr<NodeSet> set_;
    Node& node_;
    tls::Context* tls_;
    State state_ = State::fresh;
    bool probing_ = false;  // opening a node that is down; nothing waits for it
    std::shared_ptr<resp::Link> opening_;
    std::shared_ptr<resp::Pipeline> pipeline_;  // when open
    std::deque<Call> pending_;
    std::vector<Request> queued_, gathered_;
    PendingReleases releases_;
    bool watching_ = false, chores_armed_ = false, gathering_ = false;
    bool demoted_ = false;  // it answered that it is a replica
    boot_clock::time_point heard_{}, next_try_{}, chores_due_{};
    resp::LeftReplica left_;
    milliseconds pause_{50};
    asio::steady_timer silence_, chores_;
};

}  // namespace holdfast::redlock
