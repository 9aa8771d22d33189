// What all connections of one client to a database server share: the server's clock, the grants
// under way, the watchdog, and what is known of the way there.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/clock.hpp"
#include "hosts.hpp"
#include "reports.hpp"
#include "server_error.hpp"
#include "server_step.hpp"
#include "watchdog.hpp"

namespace holdfast::sql {

/// Microseconds of the clock of deadlines.
inline std::int64_t local_us(boot_clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

struct Server {
    /// `of_the_url`: see Hosts.
    Server(const Errors& its, std::shared_ptr<Watchdog> its_watchdog,
           std::vector<spi::Endpoint> of_the_url)
        : errors(its), watchdog(std::move(its_watchdog)), hosts(its, std::move(of_the_url)) {}

    const Errors& errors;
    const std::shared_ptr<Watchdog> watchdog;
    Hosts hosts;
    std::atomic<std::uint64_t> requests{0};
    /// Whether a reader, or permits, found the name free the last time: then one statement
    /// suffices.
    std::atomic<bool> found_free{true};
    Reports reports;

    /// A connection leads to another server than the ones before it.
    void moved(const Destination& left);

    /// What the server warns of, once each; a hostile one has no end of words.
    void heard_warning(std::string text) {
        {
            const std::lock_guard hold(mutex_);
            if (server_warnings_.size() >= 8 || !server_warnings_.insert(text).second) return;
        }
        reports.warn(std::move(text));
    }

    /// The server's clock when it was read, against ours on receipt: a lower bound of the true
    /// offset, so a deadline in the server's time is never too late.
    void heard_clock(std::int64_t server_us) noexcept {
        if (server_us < 0 || server_us > latest_time) return;  // no server says that
        const std::int64_t offset = server_us - local_us(boot_clock::now());
        offset_ = offset;
        if (std::abs(offset - ticket_offset_) > jump_us) ticket_offset_ = offset;
        for (auto seen = greatest_.load(); seen < offset;)
            if (greatest_.compare_exchange_weak(seen, offset)) break;
    }
    std::int64_t server_us(boot_clock::time_point t) const noexcept {
        return offset_ + local_us(t);
    }

    /// Since when a caller waits, with a stable order: an offset from each answer would differ a
    /// little, and a later caller could get ahead.
    std::int64_t ticket_us(boot_clock::time_point t) const noexcept {
        return ticket_offset_ + local_us(t);
    }

    /// The latest time ever sent to the server for `t`: a request sent then may act until then.
    std::int64_t latest_us(boot_clock::time_point t) const noexcept {
        return greatest_ + local_us(t);
    }

    /// Unanswered requests for grants, so that closing can take them back.
    class InFlight {
    public:
        /// Moves the steps that were called off from `steps` to `off`; all once the client closes.
        /// The others stay until this object ends.
        InFlight(Server&, Steps& steps, Steps& off);
        ~InFlight() {
            const std::lock_guard hold(server_.mutex_);
            std::erase(server_.in_flight_, steps_);
        }
        InFlight(const InFlight&) = delete;
        InFlight& operator=(const InFlight&) = delete;

    private:
        Server& server_;
        const Steps* steps_;
    };
    /// The engine no longer waits for the step. True when it was not sent and never will be.
    bool call_off(ServerStep&);
    /// True after stop_asking(): whatever is sent now must be one message.
    bool ending() const noexcept { return closing_; }
    /// Forbids further requests for grants, and calls `f` for each step that is still unanswered.
    template <class F>
    void stop_asking(F&& f) {
        const std::lock_guard hold(mutex_);
        closing_ = true;
        for (const auto* steps : in_flight_)
            for (const ServerStep* s : *steps)
                f(*s);
    }

    /// A connection that is being made.
    class Opening {
    public:
        explicit Opening(Server& server) : server_(server) {}
        ~Opening() {
            if (answered_) --server_.answered_openings_;
        }
        Opening(const Opening&) = delete;
        Opening& operator=(const Opening&) = delete;
        /// The server has answered something.
        void answer() noexcept {
            if (!std::exchange(answered_, true)) ++server_.answered_openings_;
        }
        bool answered() const noexcept { return answered_; }
        /// A server was reached, and had no time to go on.
        void slow() noexcept { slow_ = true; }
        bool was_slow() const noexcept { return slow_; }

    private:
        Server& server_;
        bool answered_ = false, slow_ = false;
    };
    /// Whether the server has answered one that is not ready yet.
    bool connecting() const noexcept { return answered_openings_ > 0; }

    /// The server had no connection left, or no time for one: make no spare ones until then.
    void crowd(boot_clock::time_point until) noexcept {
        crowded_until_ = until.time_since_epoch().count();
    }
    boot_clock::time_point crowded_until() const noexcept {
        return boot_clock::time_point(boot_clock::duration(crowded_until_));
    }

private:
    static constexpr std::int64_t latest_time = std::int64_t{1} << 60;
    static constexpr std::int64_t jump_us = 100'000;  // of the server's clock, or of the machine
    std::atomic<std::int64_t> offset_{0}, ticket_offset_{0}, greatest_{INT64_MIN / 2};
    std::atomic<std::int64_t> crowded_until_{0};
    std::atomic<int> answered_openings_{0};
    mutable std::mutex mutex_;
    std::set<std::string> server_warnings_;
    std::vector<const Steps*> in_flight_;
    std::atomic<bool> closing_{false};
};

/// The loopback interface, or a Unix socket, which has no address.
bool on_this_machine(const std::string& address);

/// The outcome of a statement that failed, in a step.
void refuse(const Server&, ServerStep&, const Reply&);
/// Writes the outcome into an attempt, and what may be left at the server into its place.
void take(ServerStep&, const Server&, spi::Attempt&);
/// After releases that were answered, and whose outcome stays: an earlier request of the same owner
/// that may still be under way must not take the lock again. `withdraw` gets steps of their own.
void keep_out(const Server&, const Steps& released,
              const std::function<void(const Steps&)>& withdraw);
/// False: there is an error, which is now in all of them.
bool went_well(const Server&, const Reply&, const Steps&);

}  // namespace holdfast::sql
