// Who of this client waits for which name. The one who waits longest asks the server, the others
// are answered from what it heard, so that waiting costs a look a second however many wait. Engine
// thread only, but for freed_elsewhere().
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/spi/backend.hpp"
#include "steps.hpp"

namespace holdfast::postgresql {

class Line : public std::enable_shared_from_this<Line> {
public:
    explicit Line(spi::Context context) : context_(context) {}

    enum class Plan : std::uint8_t {
        take,  ///< ask for it, it may be free
        look,  ///< ask, it is probably held
        wait   ///< known to be held, or somebody of ours is before it
    };
    Plan plan(const std::string& key, const spi::Attempt&, boot_clock::time_point now) const;
    /// How long such a waiter sleeps.
    milliseconds pause(const std::string& key, milliseconds ttl, boot_clock::time_point now) const;

    /// A place in line, unless it has one.
    void enter(const std::string& key, std::string_view owner);
    void leave(std::string_view owner);
    /// What the server said of an attempt.
    void heard(const Step&, boot_clock::time_point now);
    /// It may be free: the first in line is woken.
    void freed(const std::string& key);
    /// Anything may have happened meanwhile.
    void missed_something();
    /// The same from any thread; costs nothing while nobody waits.
    void freed_elsewhere(const std::string& key);
    bool empty() const noexcept { return waiting_ == 0; }
    /// No more calls to core.
    void close() noexcept { closed_ = true; }

private:
    struct Name {
        std::deque<std::string> owners;
        std::string holder;
        boot_clock::time_point held_until{}, heard{};
        bool hint = false;  ///< somebody was woken, and has not been answered yet
    };
    static boot_clock::duration interval(milliseconds ttl) noexcept;

    const spi::Context context_;
    std::unordered_map<std::string, Name> names_;
    std::unordered_map<std::string, std::string> key_of_;  // owner -> key
    std::atomic<std::size_t> waiting_{0};
    bool closed_ = false;
};

}  // namespace holdfast::postgresql
