// One Sentinel: asked for the primary again and again, and heard of a switch in between, on one
// connection.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "../../resp/pipeline.hpp"
#include "agreement.hpp"

namespace holdfast::redis {

using namespace resp;

/// Engine thread only. Connects when it is asked, and keeps the connection, which is subscribed to
/// `+switch-master` between two questions.
class Sentinel final : public Pipeline::Asker, public std::enable_shared_from_this<Sentinel> {
public:
    struct Listener {
        std::function<void()> told;      ///< a question has ended, or the connection has
        std::function<void()> switched;  ///< it says that there is another primary
        std::function<void(std::string)> warn;
    };
    /// `name`: of the primary. A question has failed that is not answered, or waits for its
    /// connection, for longer than `patience`; a connection that is not open within `connecting`.
    Sentinel(asio::any_io_executor, Target, tls::Context*, std::string name, milliseconds patience,
             milliseconds connecting, Listener);

    /// While a question is under way: once more after it.
    void ask();
    bool asking() const noexcept { return asking_; }
    /// The last answer; none: it has not named a primary.
    const std::optional<Named>& last() const noexcept { return last_; }
    /// Why the last question has no answer.
    const spi::Failure& failed() const noexcept { return failed_; }
    /// Of its last answer: those of SENTINEL MASTER that doctor judges.
    using Facts = std::map<std::string, std::string, std::less<>>;
    const Facts& facts() const noexcept { return facts_; }
    const Target& target() const noexcept { return server_->target; }
    void close() noexcept;

private:
    enum class Step : std::uint8_t { unsubscribe, address, facts, subscribe };
    asio::awaitable<void> connect();
    void send();
    bool take(Reply&) override;
    void settled() override;
    void broke(Error) override;
    void address(const Reply&);
    void details(const Reply&);
    void subscribed(const Reply&);
    void limit();
    void unanswered();
    void fail(spi::Failure);
    void end();

    asio::any_io_executor executor_;
    std::shared_ptr<Server> server_;
    tls::Context* tls_;
    const std::string name_;
    const milliseconds patience_, connecting_;
    Listener listener_;
    asio::steady_timer timer_;
    std::shared_ptr<Link> opening_;
    std::shared_ptr<Pipeline> pipeline_;
    std::deque<Step> steps_;  // whose replies are still to come
    Named naming_;            // the answer in the making
    spi::Failure refused_;    // the same of its refusal
    std::optional<Named> last_;
    Facts facts_;
    spi::Failure failed_;
    bool asking_ = false, again_ = false, closed_ = false;
    bool subscribed_ = false, deaf_ = false;
    bool answered_ = false, switched_ = false;  // to be told when all replies are taken
};

}  // namespace holdfast::redis
