// Shared by all connections of one client.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../common/warnings.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/spi/host_names.hpp"
#include "holdfast/spi/owner.hpp"
#include "options.hpp"
#include "statements.hpp"
#include "watchdog.hpp"

namespace holdfast::postgresql {

class Waiters;
struct Step;

/// Microseconds of the clock of deadlines.
inline std::int64_t local_us(boot_clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

struct Shared {
    Shared(const spi::Settings& s, const boost::asio::any_io_executor& engine)
        : options(s),
          statements(as_identifier(options.schema)),
          me(spi::make_owner({}).substr(0, 22)),
          watchdog(std::make_shared<Watchdog>(engine)) {}

    const Options options;
    const Statements statements;  ///< until the schema of the table is known
    spi::HostNames names;
    const std::string me;  ///< the id of this client in a line
    const std::shared_ptr<Watchdog> watchdog;
    std::shared_ptr<Waiters> waiters;  ///< this client's waiters; set with the client
    std::atomic<std::uint64_t> requests{0};
    /// Whether a reader, or permits, found the name free the last time: then one statement
    /// suffices.
    std::atomic<bool> found_free{true};
    sql::Warnings warnings;

    /// What the server warns of, once each; a hostile one has no end of words.
    void heard_warning(std::string text) {
        {
            const std::lock_guard hold(mutex_);
            if (server_warnings_.size() >= 8 || !server_warnings_.insert(text).second) return;
        }
        warnings.tell(std::move(text));
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
        InFlight(Shared&, std::vector<Step*>& steps, std::vector<Step*>& off);
        ~InFlight() {
            const std::lock_guard hold(shared_.mutex_);
            std::erase(shared_.in_flight_, steps_);
        }
        InFlight(const InFlight&) = delete;
        InFlight& operator=(const InFlight&) = delete;

    private:
        Shared& shared_;
        const std::vector<Step*>* steps_;
    };
    /// The engine no longer waits for the step. True when it was not sent and never will be.
    bool call_off(Step&);
    /// True after stop_asking(): whatever is sent now must be one message.
    bool ending() const noexcept { return closing_; }
    /// Forbids further requests for grants, and calls `f` for each step that is still unanswered.
    template <class F>
    void stop_asking(F&& f) {
        const std::lock_guard hold(mutex_);
        closing_ = true;
        for (const auto* steps : in_flight_)
            for (const Step* s : *steps)
                f(*s);
    }

    /// A connection that is being made.
    class Opening {
    public:
        explicit Opening(Shared& shared) : shared_(shared) {}
        ~Opening() {
            if (answered_) --shared_.answered_openings_;
        }
        Opening(const Opening&) = delete;
        Opening& operator=(const Opening&) = delete;
        /// The server has answered something.
        void answer() noexcept {
            if (!std::exchange(answered_, true)) ++shared_.answered_openings_;
        }
        bool answered() const noexcept { return answered_; }

    private:
        Shared& shared_;
        bool answered_ = false;
    };
    /// Whether the server has answered one that is not ready yet.
    bool connecting() const noexcept { return answered_openings_ > 0; }

    /// The server had no connection left: make no spare ones until then.
    void crowd(boot_clock::time_point until) noexcept {
        crowded_until_ = until.time_since_epoch().count();
    }
    boot_clock::time_point crowded_until() const noexcept {
        return boot_clock::time_point(boot_clock::duration(crowded_until_));
    }

    /// Whether another connection has audited the table in its present state.
    bool audited(const std::string& which) const {
        const std::lock_guard hold(mutex_);
        return audited_ == which;
    }
    void audit_passed(const std::string& which) {
        const std::lock_guard hold(mutex_);
        audited_ = which;
    }

    /// The statements for the table in that schema. They name the schema, since search_path may
    /// lead to another one at any time.
    std::shared_ptr<const Statements> statements_in(const std::string& schema) {
        const std::lock_guard hold(mutex_);
        if (schema_ != schema || !pinned_) {
            pinned_ = std::make_shared<const Statements>(schema);
            schema_ = schema;
        }
        return pinned_;
    }

    /// The last address reached. A caller's thread connects there without asking DNS.
    std::string reached() const {
        const std::lock_guard hold(mutex_);
        return reached_;
    }
    void reach(std::string address) {
        const std::lock_guard hold(mutex_);
        reached_ = std::move(address);
    }

private:
    static constexpr std::int64_t latest_time = std::int64_t{1} << 60;
    static constexpr std::int64_t jump_us = 100'000;  // of the server's clock, or of the machine
    std::atomic<std::int64_t> offset_{0}, ticket_offset_{0}, greatest_{INT64_MIN / 2};
    std::atomic<std::int64_t> crowded_until_{0};
    std::atomic<int> answered_openings_{0};
    mutable std::mutex mutex_;
    std::string reached_, audited_, schema_;
    std::set<std::string> server_warnings_;
    std::shared_ptr<const Statements> pinned_;
    std::vector<const std::vector<Step*>*> in_flight_;
    std::atomic<bool> closing_{false};
};

}  // namespace holdfast::postgresql
