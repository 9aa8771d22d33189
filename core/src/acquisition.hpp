// One acquisition on the engine: the one wait loop, for backends that queue, notify or poll and for
// those with sessions.
#pragma once
#include "backend_lock.hpp"
#include "backoff.hpp"
#include "engine.hpp"
#include "holdfast/lock.hpp"
#include "silence.hpp"

namespace holdfast {

/// attempting -> granted, or busy -> parked -> (notified, or time to look) -> attempting -> ...
///
/// The caller is notified at once at its deadline or cancellation. What may be left at the server
/// is then withdrawn in the background, again and again until the server has answered or the ttl
/// has passed. Engine thread only, except for the constructor.
class Acquisition final : public Timed, private Orphan {
public:
    using SyncResult = std::pair<error_code, Lease>;

    struct Caller {  ///< what to notify: one of the two
        Callback<Lock::Signature>::Handler handler;
        std::shared_ptr<OneShot<SyncResult>> latch;
        Diagnostics* diagnostics = nullptr;
    };

    Acquisition(std::shared_ptr<Engine>, std::weak_ptr<Client::Impl>,
                std::shared_ptr<const LockInfo>, std::string owner, const spi::Units&,
                milliseconds wait, boot_clock::time_point started, Caller);
    ~Acquisition() override;

    /// Takes over what a lane's attempt of the same owner left behind. Before submit().
    void adopt(spi::Attempt&);

    void start();
    /// Instead of start(), on the caller's thread: the engine has ended before.
    void refuse(error_code why) { finish(why); }
    void fire(boot_clock::time_point now) override;
    void wake();
    /// Another server takes over: whatever waited for its time is asked there at once.
    void moved();
    void cancel(error_code);

    /// It waits behind other requests of this client, see Batches. The time of a request begins
    /// when it is sent, so our own queue puts no caller in doubt. unanswered() ends it when the
    /// server answers nothing at all.
    void queued_here() noexcept { queued_here_ = true; }
    void unanswered(boot_clock::time_point now);
    /// False: not to be sent, since its caller no longer waits.
    bool to_be_sent();
    spi::Attempt* prepare_attempt(boot_clock::time_point now);
    /// The outcome is an answer of the server.
    bool heard() const noexcept { return has_answered(attempt_); }
    void answered();
    spi::Attempt* prepare_withdrawal(boot_clock::time_point now);
    bool is_withdrawn() const noexcept { return !attempt_.withdrawal; }
    void withdrawn();
    /// The engine is gone: leaves what may be at the server to the ttl.
    void forget() { end(); }

private:
    enum class Phase : std::uint8_t { idle, attempting, parked, withdrawing, resting, done };

    std::shared_ptr<void> orphaned() override;
    void join_engine();
    static bool has_answered(const spi::Attempt&) noexcept;
    /// No answer, and yet one will come: another server takes over.
    void note_take_over(const spi::Attempt&) noexcept;
    /// A server has answered, or another one takes over: only the caller bounds the wait.
    bool in_contact() const noexcept { return answered_ever_ || taken_over_; }
    /// When the server must have given its first answer.
    boot_clock::time_point contact_until() const noexcept;

    void tell(Event::Kind, error_code = {});
    void look();
    void look_at(boot_clock::time_point);
    void rearm();
    void granted();
    /// Makes the lease and notifies the caller, unless the acquisition or the client has ended.
    error_code deliver();
    void retry(error_code, bool in_doubt);
    void finish(error_code, Lease = {});
    void leave();
    void end();
    std::shared_ptr<Acquisition> self() {
        return std::static_pointer_cast<Acquisition>(shared_from_this());
    }

    std::shared_ptr<Engine> engine_;
    std::weak_ptr<Client::Impl> client_;
    std::shared_ptr<const LockInfo> info_;
    std::string owner_;
    spi::Attempt attempt_;
    std::shared_ptr<OneShot<SyncResult>> latch_;
    Diagnostics* diagnostics_;
    Phase phase_ = Phase::idle;
    bool told_ = false, queued_ = false, doubtful_ = false, ending_ = false;
    bool woken_ = false, hurried_ = false;  // hurried_: attempted again without a pause
    bool under_way_ = false, queued_here_ = false, joined_ = false;
    bool sent_ever_ = false, answered_ever_ = false, taken_over_ = false, wait_zero_ = false,
         asked_whole_ = false;
    boot_clock::time_point started_, deadline_, first_sent_, look_, last_request_;
    Silence silence_;
    error_code last_error_;
    /// Why an earlier request was refused: the last one may have had no time for an answer.
    struct Refusal {
        error_code why;
        std::string words;
    };
    std::unique_ptr<Refusal> refusal_;
    Backoff poll_, retry_;
    Callback<Lock::Signature> callback_;
};

}  // namespace holdfast
