// Runs rounds on the engine: over its own connections, many at once.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/intrusive/list.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "line.hpp"
#include "rounds.hpp"

namespace holdfast::redlock {

/// A round that the engine has begun and not finished.
class Running {
public:
    using Hook = boost::intrusive::list_member_hook<
        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
    virtual ~Running() = default;
    virtual void stop(boot_clock::time_point now) = 0;
    Hook hook;
};
using RunningList =
    boost::intrusive::list<Running,
                           boost::intrusive::member_hook<Running, Running::Hook, &Running::hook>,
                           boost::intrusive::constant_time_size<false>>;

/// A request of a lane.
struct Asked {
    std::string key, value;
    bool shared = false;
    boot_clock::time_point deadline;
    milliseconds ttl{};  ///< how long a node keeps the lock
    bool open = false;   ///< not answered yet
};

/// Shared on the engine's side. Engine thread only, except for `asked`.
struct Fabric final : Aftermath {
    asio::any_io_executor executor;
    std::shared_ptr<NodeSet> set;
    std::vector<std::shared_ptr<Line>> lines;
    std::function<void(std::string)> warn;  ///< called once per text
    RunningList running;
    std::mutex mutex;
    std::vector<Asked*> asked;  ///< one of each lane; the mutex guards list and entries

    /// Fewer than a majority are up, so nodes that are down are waited for.
    bool patient() const noexcept { return set->up() < set->quorum(); }
    Setting setting() { return setting(*this); }
    Setting setting(Aftermath& after) const {
        return {*set, after, set->options.prefix, set->options.fencing};
    }
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
             milliseconds ttl) override;
    void extend(std::size_t node, const Ask& enter, const std::shared_ptr<void>& place) override;
    /// Finishes all rounds: what they, and lanes, may have acquired is then owed.
    void stop();
};

/// Collects requests to the nodes while it lives, then sends them in as few calls as possible.
class Together {
public:
    explicit Together(const Fabric&);
    ~Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

private:
    const Fabric& fabric_;
};

/// Begins a round. Calls `done` once, by its deadline, perhaps inside this call. The round lives on
/// while answers may come.
void drive(std::shared_ptr<Fabric>, std::shared_ptr<Round>, std::function<void()> done);

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

}  // namespace holdfast::redlock
