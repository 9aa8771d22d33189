// One acquisition on the engine: the one wait loop, for queueing, notified, polling and session
// backends alike.
#pragma once
#include "backoff.hpp"
#include "engine.hpp"
#include "holdfast/lock.hpp"
#include "lock_info.hpp"

namespace holdfast {

/// attempting -> granted, or busy -> parked -> (woken, or time to look) -> attempting -> ...
/// The caller is told at its deadline or cancellation at once; what may be left at the server is
/// then withdrawn in the background, and repeated until the server has answered or the ttl has
/// passed. Engine thread only, but for the constructor.
class Waiter final : public Timed {
public:
    using SyncResult = std::pair<error_code, Lease>;

    struct Caller {  ///< who is told: one of the two
        Callback<Lock::Signature> callback;
        std::shared_ptr<Latch<SyncResult>> latch;
        Diagnostics* diagnostics = nullptr;
    };

    Waiter(std::shared_ptr<Engine>, std::weak_ptr<Handle>, std::shared_ptr<const LockInfo>,
           std::string owner, milliseconds wait, boot_clock::time_point started, Caller);
    ~Waiter() override;

    /// Takes over what a lane's attempt of the same owner left behind. Before submit().
    void adopt(spi::Attempt&);

    /// The first attempt, for a lane in halves. Before start(), on the thread that has it.
    spi::Attempt& prepare_ride(boot_clock::time_point now);
    spi::Attempt& riding() noexcept { return attempt_; }
    /// Its outcome is there. False: the engine has to go on from it; else the caller was told.
    bool ridden();

    void start();
    /// Instead of start(), on the caller's thread: the engine had ended before it was asked.
    void refuse(error_code why) { finish(why); }
    void fire(boot_clock::time_point now) override;
    void wake();
    void cancel(error_code);

    spi::Attempt& prepare_attempt(boot_clock::time_point now);
    void answered();
    bool has_answered(const spi::Attempt& asked) const noexcept;
    spi::Attempt& prepare_withdrawal(boot_clock::time_point now);
    void withdrawn(error_code);
    /// The engine is gone: what may be left at the server is left to the ttl.
    void forget() { end(); }

private:
    enum class Phase : std::uint8_t { idle, attempting, parked, withdrawing, resting, done };

    void look();
    void look_at(boot_clock::time_point);
    void rearm();
    /// The attempt that a lane made counts as this waiter's first.
    void go_on_from(const spi::Attempt& asked);
    void granted(const spi::Attempt::Granted&);
    /// Makes the lease and tells the caller; not when it is over already, or the client is.
    error_code deliver(const spi::Attempt::Granted&);
    void retry(error_code, bool in_doubt);
    void finish(error_code, Lease = {});
    void leave();
    void end();
    std::shared_ptr<Waiter> self() { return std::static_pointer_cast<Waiter>(shared_from_this()); }

    std::shared_ptr<Engine> engine_;
    std::weak_ptr<Handle> handle_;
    std::shared_ptr<const LockInfo> info_;
    std::string owner_;
    spi::Attempt attempt_;
    Caller caller_;
    Phase phase_ = Phase::idle;
    bool told_ = false, queued_ = false, doubtful_ = false, woken_ = false, ending_ = false;
    bool under_way_ = false;
    bool answered_ever_ = false, wait_zero_ = false;
    boot_clock::time_point started_, deadline_, contact_until_, look_, last_request_;
    error_code last_error_;
    Backoff poll_, retry_;
};

}  // namespace holdfast
