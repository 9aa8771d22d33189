// Runs rounds on the engine: over its own connections, many at once.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/intrusive/list.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "listening.hpp"
#include "node_connection.hpp"
#include "rounds.hpp"

namespace holdfast::redlock {

/// A round that the engine has begun and not finished.
class ActiveRound {
public:
    using Hook = boost::intrusive::list_member_hook<
        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
    virtual ~ActiveRound() = default;
    virtual void stop(boot_clock::time_point now) = 0;
    Hook hook;
};
using ActiveRounds = boost::intrusive::list<
    ActiveRound, boost::intrusive::member_hook<ActiveRound, ActiveRound::Hook, &ActiveRound::hook>,
    boost::intrusive::constant_time_size<false>>;

/// A request of a lane.
struct LaneRequest {
    std::string key, value;
    bool shared = false;
    boot_clock::time_point deadline;
    milliseconds ttl{};  ///< how long a node keeps the lock
    bool open = false;   ///< not answered yet
};

/// Shared on the engine's side. Engine thread only, except for `lane_requests`.
struct Deployment final : CleanUp {
    asio::any_io_executor executor;
    std::shared_ptr<NodeSet> set;
    std::vector<std::shared_ptr<NodeConnection>> connections;
    std::unique_ptr<Listening> listening;   ///< null: fencing=off, waiters poll
    std::function<void(std::string)> warn;  ///< called once per text
    ActiveRounds running;
    std::mutex mutex;
    std::vector<LaneRequest*>
        lane_requests;  ///< one of each lane; the mutex guards list and entries

    /// Fewer than a majority are up, so nodes that are down are waited for.
    bool patient() const noexcept { return set->up() < set->quorum(); }
    bool told() const noexcept { return listening && listening->works(); }
    RoundContext round_context() {
        RoundContext c = round_context(*this);
        if (listening) c.channel = listening->channel();
        c.told = told();
        return c;
    }
    RoundContext round_context(CleanUp& after) const {
        return {*set, after, set->options.prefix, set->options.fencing};
    }
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
             milliseconds ttl) override;
    void arrived(std::size_t node, const std::string& value) override {
        connections[node]->arrived(value);
    }
    void acquire_late(std::size_t node, const Ask& enter,
                      const std::shared_ptr<void>& place) override;
    /// Finishes all rounds: what they, and lanes, may have acquired is then owed.
    void stop();
};

/// Collects requests to the nodes while it lives, then sends them in as few calls as possible.
class CorkScope {
public:
    explicit CorkScope(const Deployment&);
    ~CorkScope();
    CorkScope(const CorkScope&) = delete;
    CorkScope& operator=(const CorkScope&) = delete;

private:
    const Deployment& deployment_;
};

/// Lets a coroutine wait for several callbacks. Engine thread only. Each callback must hold it by
/// shared_ptr, since it may come late.
class Countdown {
public:
    explicit Countdown(asio::any_io_executor e) : executor_(std::move(e)) {}
    void begin() noexcept { ++count_; }
    void end() {
        if (--count_ == 0) gate_.open();
    }
    /// Returns when all have ended.
    static asio::awaitable<void> over(std::shared_ptr<Countdown> all) {
        while (all->count_ > 0) {
            auto wait = all->gate_.wait(all->executor_, boot_clock::time_point::max());
            co_await std::move(wait);
        }
    }

private:
    asio::any_io_executor executor_;
    std::size_t count_ = 0;
    spi::net::Gate gate_;
};

/// The rounds of one call of a verb. Engine thread only.
class VerbRounds {
public:
    /// At most so many are begun.
    VerbRounds(std::shared_ptr<Deployment>, std::size_t most);
    /// It is over by its deadline, perhaps inside this call, and lives on while answers may come.
    void begin(std::shared_ptr<Round>);
    /// Calls `begin_all`, which begins them, and sends what they ask together. Ends when all are
    /// over, also where it throws: nothing is written into the verb's items from then on.
    template <class F>
    asio::awaitable<void> run(F begin_all) {
        try {
            {
                const CorkScope together(*deployment_);
                begin_all();
            }
            auto waiting = Countdown::over(under_way_);
            co_await std::move(waiting);
        } catch (const std::exception&) {
            stop();
            throw;
        }
    }

private:
    /// Finishes those under way.
    void stop() noexcept;

    const std::shared_ptr<Deployment> deployment_;
    const std::shared_ptr<Countdown> under_way_;
    std::vector<std::shared_ptr<ActiveRound>> all_;
};

}  // namespace holdfast::redlock
