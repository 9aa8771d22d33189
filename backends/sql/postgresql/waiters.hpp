// Which callers of this client wait for which name. The one that waits longest asks the server, and
// represents all of them in the server's line; the others are answered from what it learned. So
// waiting costs a look a second however many wait. Engine thread only, except for
// freed_elsewhere().
#pragma once
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../common/local_waiters.hpp"
#include "holdfast/spi/backend.hpp"
#include "steps.hpp"

namespace holdfast::postgresql {

class Waiters : public std::enable_shared_from_this<Waiters> {
public:
    explicit Waiters(spi::Context context) : context_(context) {}

    enum class Plan : std::uint8_t {
        take,   ///< ask for it: it may be free
        look,   ///< ask: it is probably held
        stand,  ///< another client was just notified: stand in line behind it
        wait    ///< it is held, or an earlier caller of ours waits
    };
    Plan plan(const std::string& key, const spi::Attempt&, boot_clock::time_point now) const;
    /// Writes into an attempt's step since when it waits, and what becomes of our place in the
    /// server's line with the grant.
    void place(Step&, boot_clock::time_point now, const Shared&) const;
    /// How long such a waiter sleeps.
    milliseconds pause(const std::string& key, milliseconds ttl, boot_clock::time_point now) const;

    /// Adds a place in line, in the order in which callers came, unless it has one.
    void enter(const std::string& key, std::string_view owner, boot_clock::time_point came);
    /// The same for one that asks by itself, since it may come in where the first in line may not.
    void enter_beside(const std::string& key, std::string_view owner);
    /// True when no caller of ours waits for that name any more, and the server may not know.
    bool leave(std::string_view owner);
    /// Records the server's answer to an attempt that was sent after `asked`.
    void heard(const Step&, boot_clock::time_point asked, boot_clock::time_point now);
    /// It may be free: notifies the first in line, and all that ask by themselves. False: no caller
    /// of ours waits for it.
    bool freed(const std::string& key);
    /// We released it, and another client was notified. Do not ask for it at once: our next request
    /// could overtake that client's.
    void handed_on(const std::string& key);
    void handed_on_elsewhere(const std::string& key);
    /// Whether the server can notify us of releases. Releases may have been missed before.
    void hearing(bool can);
    /// freed() from any thread; costs nothing while no caller waits.
    void freed_elsewhere(const std::string& key);
    bool hears() const noexcept { return hearing_; }
    bool empty() const noexcept { return waiting_ == 0; }
    /// No more calls to core.
    void close() noexcept { closed_ = true; }

private:
    struct Known {
        boot_clock::time_point heard{}, told{};
        bool hint = false;    ///< a waiter was notified, and has no answer yet
        bool placed = false;  ///< this client stands in the server's line
    };
    using InLine = sql::LocalWaiters<boot_clock::time_point, Known>;
    void count() noexcept { waiting_ = in_line_.size() + beside_of_.size(); }
    boot_clock::time_point left_alone_until(const std::string& key) const;
    static boot_clock::duration interval(milliseconds ttl) noexcept;

    const spi::Context context_;
    InLine in_line_;
    std::unordered_map<std::string, std::set<std::string, std::less<>>> beside_;  // key -> owners
    std::unordered_map<std::string, std::string> beside_of_;                      // owner -> key
    std::unordered_map<std::string, boot_clock::time_point> left_alone_;
    std::atomic<std::size_t> waiting_{0};
    bool hearing_ = false, closed_ = false;
};

}  // namespace holdfast::postgresql
