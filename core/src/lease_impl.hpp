// Core's implementation of a lease: the one renewal loop, loss, and release with its retries.
#pragma once
#include <forward_list>
#include <mutex>
#include <stop_token>

#include "backend_lock.hpp"
#include "backoff.hpp"
#include "engine.hpp"
#include "explain.hpp"
#include "holdfast/spi/lease_body.hpp"

namespace holdfast {

/// held -> (renewal due) -> held | at risk -> ... -> lost | released.
///
/// Any thread may call the functions of LeaseBody; the rest runs on the engine thread. It is
/// scheduled from the start, before the caller sees the grant. After release or loss it is not
/// renewed. It keeps itself alive only while its release is under way.
class LeaseImpl final : public spi::LeaseBody, public Timed {
public:
    struct Facts {
        FencingToken token;
        PreviousHolder previous;
        spi::Units units;
        milliseconds ttl;  ///< what the server set for this grant
        boot_clock::time_point base;
        boot_clock::time_point valid_until;
        boot_clock::time_point started;  ///< when the acquisition began
        boot_clock::time_point granted;  ///< when the answer came
    };
    /// What a granted attempt promises; nullopt when its validity is over already, since the answer
    /// took too long.
    static std::optional<Facts> facts_of(const spi::Attempt&, boot_clock::time_point started);
    static std::shared_ptr<LeaseImpl> make(std::shared_ptr<Engine>, std::shared_ptr<Client::Impl>,
                                           std::shared_ptr<const LockInfo>, std::string owner,
                                           std::shared_ptr<void> place, const Facts&);
    LeaseImpl(std::shared_ptr<Engine>, std::shared_ptr<Client::Impl>,
              std::shared_ptr<const LockInfo>, std::string owner, std::shared_ptr<void> place,
              const Facts&);
    ~LeaseImpl() override;

    // --- spi::LeaseBody
    LeaseState state() const noexcept override;
    bool valid() const noexcept override;
    std::string_view name() const noexcept override { return info_->name; }
    std::string_view owner() const noexcept override { return owner_; }
    FencingToken token() const noexcept override { return token_; }
    PreviousHolder previous() const noexcept override { return previous_; }
    Mode mode() const noexcept override { return mode_.load(std::memory_order_relaxed); }
    std::uint32_t permits() const noexcept override { return units_.permits() ? units_.take : 1; }
    boot_clock::time_point valid_until() const noexcept override;
    std::stop_token lost() override;
    std::optional<error_code> begin_downgrade() override;
    std::stop_token release_requested() override;
    void complete(asio::any_completion_handler<Lease::RenewSignature>, error_code) override;
    error_code lost_reason() const noexcept override;
    RequestError last_error() const override;
    result<void> renew() override;
    ReleaseResult release(Outcome) noexcept override;
    void async_renew(asio::any_completion_handler<Lease::RenewSignature>) override;
    void async_release(Outcome, asio::any_completion_handler<Lease::ReleaseSignature>) override;
    void async_lost(asio::any_completion_handler<Lease::RenewSignature>) override;
    void drop(Outcome) noexcept override;
    bool forked() const noexcept { return engine_->forked(); }

    /// Releases on the lane that brought the grant, on the caller's thread: the client was closed
    /// meanwhile.
    void give_back(spi::Lane&) noexcept;

    // --- engine thread
    void fire(boot_clock::time_point now) override;
    /// Null: the lease has ended meanwhile.
    spi::Held* prepare_renewal(boot_clock::time_point now);
    bool renewal_heard() const noexcept { return renewal_.renewal != spi::Held::Renewal::unknown; }
    void renewed();
    /// Called once, after the caller that ended the lease has submitted it.
    void start_release();
    /// Instead of start_release(), on the caller's thread: the engine has ended before.
    void refuse_release();
    spi::Held* prepare_release(boot_clock::time_point now);
    /// As in Acquisition, for a release that waits in this client.
    void queued_here() noexcept { queued_here_ = true; }
    void unanswered(boot_clock::time_point now);
    bool to_be_sent();
    bool release_heard() const noexcept { return release_.released != ReleaseResult::unreachable; }
    void release_answered();
    void lose(error_code why, bool give_back);
    /// It is over. Gives it back, unless max_hold or a lock delay leaves that to the caller, who
    /// may still be at work: only the caller opens the name before its time.
    void expire() {
        const error_code why = end_reason();
        lose(why, why == expired_error() && info_->lock_delay <= milliseconds::zero());
    }
    /// The server itself has reported the loss.
    void reported_lost(error_code why, std::string text = {});
    void renew_now();
    /// Another server takes over: it is asked for a renewal, or for an unanswered release, at once.
    void moved();
    /// The release of this lease was requested.
    void asked();
    /// The engine is gone: leaves an unanswered release to the ttl.
    void forget();
    /// False once released or lost, also by another thread just now.
    bool lives() const noexcept;
    bool at_risk() const noexcept { return state_.load() == LeaseState::at_risk; }

private:
    using Renewing = asio::any_completion_handler<void(error_code)>;
    class RenewOnce;
    /// What to notify of the outcome of a release (at most one of the two), and until when.
    struct Ending {
        Ending(std::shared_ptr<OneShot<ReleaseResult>> l, boot_clock::time_point by)
            : latch(std::move(l)), answer_by(by) {}
        Ending(asio::any_completion_handler<Lease::ReleaseSignature> h, const Engine& e,
               boot_clock::time_point by)
            : answer_by(by), callback(std::move(h), e.default_executor()) {}
        std::shared_ptr<OneShot<ReleaseResult>> latch;
        boot_clock::time_point answer_by;
        Callback<Lease::ReleaseSignature> callback;
    };

    struct Losing;
    /// What a loss notifies.
    struct Loss {
        RequestError why;
        std::stop_source stop{std::nostopstate};
        std::forward_list<Losing> losing;
    };
    /// The validity, or max_hold, is over, and nobody has noticed yet. Under the mutex, which
    /// renewed() holds from its look at the clock until it has extended the validity: what was seen
    /// as over stays so.
    bool over() const noexcept { return lives() && boot_clock::now() >= end(); }
    boot_clock::time_point end() const noexcept { return std::min(valid_until(), ends_at_); }
    /// Which of the two, of one that is over.
    error_code end_reason() const noexcept {
        return ends_at_ < valid_until() ? max_hold_error() : expired_error();
    }
    /// Ends a lease that lives. Under the mutex, on any thread.
    Loss mark_lost(error_code why);
    void notify(Loss);
    /// By the renewal that was answered. Under the mutex.
    void extend();
    void schedule_next();
    /// Plans the renewal of what the server set at `base` for `length`.
    void plan_renewal(boot_clock::time_point base, milliseconds length) noexcept;
    void stop_telling(std::uint64_t id);
    void tell(Event::Kind, RequestError = {}, std::optional<boot_clock::time_point> since = {});
    /// Of a verb that failed: without a word it was not answered.
    static RequestError error_of(error_code, std::string words);
    /// Keeps what last_error() answers.
    void keep_error(RequestError);
    /// Counts the end once, however it came. The hold time ends with the validity at the latest.
    void count_end(boot_clock::time_point) noexcept;
    spi::Held held(boot_clock::time_point now, boot_clock::time_point deadline) const;
    /// When this call ended the lease; nullopt when it was over already.
    std::optional<boot_clock::time_point> begin_release(Outcome) noexcept;
    /// The release got no answer, or a refusal. Returns why.
    RequestError not_released(spi::Held&);
    /// The server has answered the caller's release. Returns what the caller gets.
    ReleaseResult released(ReleaseResult);
    /// A request that ends at `by` may make the server keep the name from then on for a whole ttl.
    void kept_from(boot_clock::time_point by) noexcept;
    /// Until when the server may keep the name closed.
    boot_clock::time_point kept_until() const noexcept;
    /// Has the engine release it. For the one caller that ended the lease.
    ReleaseResult release_since(boot_clock::time_point now);
    ReleaseResult release_on(spi::Lane&, boot_clock::time_point now);
    void release_in_background();
    /// The request is sent now, so the caller waits for one request time-out from here.
    void begin_answer_time();
    /// When to notify the caller at the latest; never when none waits.
    boot_clock::time_point answer_by() const noexcept;
    void renew_in_background(Renewing);
    /// Notifies the caller, once.
    void answer_release(ReleaseResult, error_code why = make_error_code(errc::unavailable));
    void stop_releasing();
    std::shared_ptr<LeaseImpl> self() {
        return std::static_pointer_cast<LeaseImpl>(shared_from_this());
    }

    const std::shared_ptr<Engine> engine_;
    std::shared_ptr<Client::Impl> client_;
    const std::shared_ptr<const LockInfo> info_;
    const std::string owner_;
    const std::shared_ptr<void> place_;
    const FencingToken token_;
    const spi::Units units_;  // as granted
    const boot_clock::time_point since_;
    const PreviousHolder previous_;

    std::atomic<Mode> mode_;
    std::atomic<LeaseState> state_{LeaseState::held};
    std::atomic<boot_clock::rep> valid_until_;
    std::atomic<milliseconds::rep> granted_;    // what the server set last
    const boot_clock::time_point asked_until_;  // how long a fixed lease must last
    const boot_clock::time_point ends_at_;      // by max_hold

    mutable std::mutex mutex_;  // guards what follows, up to the engine's part
    error_code reason_;
    RequestError last_error_;
    std::stop_source stop_{std::nostopstate}, asked_stop_{std::nostopstate};  // made on demand
    struct Losing {
        Losing(std::uint64_t i, asio::any_completion_handler<Lease::RenewSignature> h,
               const Engine& e)
            : id(i), callback(std::move(h), e.default_executor()) {}
        std::uint64_t id;
        Callback<Lease::RenewSignature> callback;
    };
    std::forward_list<Losing> losing_;  // newest first
    std::uint64_t last_losing_ = 0;
    ReleaseResult released_ = ReleaseResult::unreachable;
    Outcome outcome_ = Outcome::done;
    bool asked_ = false;
    bool given_back_ = false;  // of a lost lease: its one release has begun

    // Used by the thread that began its release, which is one only, then by the engine thread.
    bool in_doubt_ = false;  // a request to release it was not answered
    int refusals_ = 0;       // of its release, for good
    std::optional<Ending> ending_;

    // Engine thread only, but set before the lease is scheduled.
    boot_clock::time_point next_renewal_, next_release_, kept_until_;
    bool renewing_ = false, releasing_ = false, release_sent_ = false, queued_here_ = false;
    bool again_at_once_ = false, moved_meanwhile_ = false;
    bool for_caller_ = false;  // the release that was begun
    std::vector<Renewing> renewals_;
    spi::Held renewal_, release_;
    Backoff retry_;
    std::shared_ptr<LeaseImpl> keep_;
};

}  // namespace holdfast
