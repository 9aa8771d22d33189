// What the holder of one lease hears of its end, and what docs/guarantees.md says that it should:
// each way tells a loss once, in time and with its reason, and a release is no loss.
#pragma once
#include <boost/asio/cancellation_signal.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "told.hpp"
#include "world.hpp"

namespace holdfast::sim {

class Listener {
public:
    /// Of what was just granted, and asked for then.
    Listener(World&, World::User&, const Belief&, Nanos asked);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Its holder asks to be told, in one more way.
    void ask(Lease&);
    /// It does not want to hear any more.
    void cancel();
    /// How its client sees it after a step.
    void see(const Belief&, LeaseState);
    /// When it was first seen to be lost.
    const std::optional<Running>& ended() const { return ended_; }
    /// Its release has begun and returned, and this is its reason now; nullopt: it was dropped.
    void left(std::optional<error_code> reason, const Belief&);
    /// When its acquisition was called.
    Nanos called() const noexcept { return called_; }
    /// All should have been told by now.
    bool is_due() const;
    /// Judges what was told, in words.
    std::string wrong() const;

private:
    enum class End : std::uint8_t { none, lost, released, either };
    using Stop = std::stop_callback<std::function<void()>>;
    /// What outlives this: a handler may come at any time.
    struct Ears {
        Told stopped, completed;
        asio::cancellation_signal signal;
    };
    std::string wrong_reason(const Belief&, error_code) const;
    std::string wrong_expiry(const Belief&) const;
    std::string wrong_time(const Told&, const Running& asked, const char* way) const;
    std::string wrong_completion(End) const;
    std::string wrong_event(End) const;
    End end() const;
    void ended(const Belief&, error_code);
    Running now() const;
    /// An operator may have broken it; `now`: freed it at once.
    bool may_be_broken(const Belief&, bool now) const;

    World& world_;
    World::User& user_;
    const std::string owner_;
    const Nanos called_;    ///< its acquisition
    const Running learnt_;  ///< of its grant
    std::shared_ptr<Ears> ears_ = std::make_shared<Ears>();
    std::optional<Stop> stop_;
    std::optional<Running> stop_asked_, completion_asked_;
    bool cancelled_ = false;
    bool risked_ = false;           ///< it was seen at risk
    std::optional<Running> ended_;  ///< when it was first seen to be lost
    error_code reason_;             ///< and what it said then
    std::optional<Running> left_;
    End end_ = End::none;
    Nanos valid_until_ = 0;  ///< as last shown
    Running extended_;       ///< when that last changed
    std::string wrong_;
};

}  // namespace holdfast::sim
