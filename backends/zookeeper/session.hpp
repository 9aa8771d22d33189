// One session at the servers. Its parts are the heartbeat that shows how long it surely lives, the
// view of the lines, and the places in them that end with it.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "handle.hpp"
#include "heartbeat.hpp"
#include "own_nodes.hpp"
#include "queue_view.hpp"

namespace holdfast::zookeeper {

/// Engine thread only. Each session serves acquisitions of one ttl and one lock_delay. Their sum is
/// its time-out, so every lease is believed to end at least lock_delay before it.
class Session final : public std::enable_shared_from_this<Session>, public Listener {
public:
    Session(std::shared_ptr<Shared>, milliseconds ttl, milliseconds lock_delay);
    ~Session() override;

    void start();
    Handle& handle() const noexcept { return *handle_; }
    Heartbeat& heartbeat() noexcept { return heartbeat_; }
    QueueView& queues() noexcept { return queues_; }
    OwnNodes& own() noexcept { return own_; }

    /// Whether new acquisitions may begin on it: it has not ended, and its proved time is not
    /// nearly used up.
    bool usable() const;
    bool over() const noexcept { return over_; }
    /// Why the servers refuse what every session needs; no error while they do not.
    const spi::Failure& refusal() const noexcept { return refused_; }
    /// Why its requests have no effect, as far as it knows, and the words for that or another
    /// error.
    error_code why_silent() const;
    std::string words_of(error_code) const;
    /// Connects and authenticates by `deadline`, or returns why not.
    awaitable<spi::Failure> ready(boot_clock::time_point deadline);
    bool idle() const noexcept { return own_.none(); }
    boot_clock::time_point last_used() const noexcept { return last_used_; }
    /// No new acquisition begins on it.
    void retire() noexcept { retired_ = true; }
    awaitable<void> close(boot_clock::time_point deadline);
    void drop();

    // --- for its parts
    void touch() { last_used_ = boot_clock::now(); }
    void refuse(spi::Failure);
    /// What is due with each heartbeat, and the heartbeat itself.
    void beat();

    // --- Listener
    void connected(bool first) override;
    void disconnected() override;
    void ended(int rc) override;
    void changed(std::string_view path, bool deleted) override;
    void children_changed(std::string_view path) override;
    bool outlives_change(boot_clock::duration answer) const override;

private:
    void ask_for_ensemble();
    void fail_all(error_code);
    void give_up_waiting(boot_clock::time_point now);

    const std::shared_ptr<Shared> shared_;
    const milliseconds ttl_, lock_delay_;
    const std::shared_ptr<Handle> handle_;
    Heartbeat heartbeat_;
    QueueView queues_;
    OwnNodes own_;
    bool over_ = false, retired_ = false, gave_up_ = false;
    spi::Failure refused_;
    spi::net::Gate state_gate_;
    boot_clock::time_point last_used_;
    bool ensemble_known_;  ///< several hosts are one ensemble, or cannot be asked
    std::optional<boot_clock::time_point> disconnected_since_;
};
using SessionPtr = std::shared_ptr<Session>;

template <class F>
Handle::Then SessionPart::when_answered(F f) const {
    return [weak = session_.weak_from_this(), f = std::move(f)](Call& c) {
        if (const auto self = weak.lock()) f(c);
    };
}

}  // namespace holdfast::zookeeper
