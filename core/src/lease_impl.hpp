// One lease as core keeps it: the one renewal loop, loss, and release with its retries.
#pragma once
#include <forward_list>
#include <mutex>
#include <stop_token>

#include "backend_lock.hpp"
#include "backoff.hpp"
#include "engine.hpp"
#include "holdfast/spi/lease_body.hpp"

namespace holdfast {

/// held -> (renewal due) -> held | at risk -> ... -> lost | released.
///
/// Any thread may call what LeaseBody declares; the rest runs on the engine thread. Scheduled from
/// its first moment on, before the caller has seen the grant; after release or loss nothing of it
/// is renewed. It keeps itself alive only while its release is under way.
class LeaseImpl final : public spi::LeaseBody, public Timed {
public:
    struct Facts {
        FencingToken token;
        PreviousHolder previous;
        spi::Units units;
        milliseconds ttl;  ///< what the server set for this grant
        boot_clock::time_point base;
        boot_clock::time_point valid_until;
        boot_clock::time_point started;  ///< when the call began
        boot_clock::time_point granted;  ///< when its answer was there
    };
    /// What an attempt that was granted promises; nothing when that is over already, since the
    /// answer took too long.
    static std::optional<Facts> facts_of(const spi::Attempt&, boot_clock::time_point started);
    static std::shared_ptr<LeaseImpl> make(std::shared_ptr<Engine>, std::shared_ptr<Handle>,
                                           std::shared_ptr<const LockInfo>, std::string owner,
                                           std::shared_ptr<void> place, const Facts&);
    LeaseImpl(std::shared_ptr<Engine>, std::shared_ptr<Handle>, std::shared_ptr<const LockInfo>,
              std::string owner, std::shared_ptr<void> place, const Facts&);
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
    result<void> downgrade() override;
    std::stop_token release_requested() override;
    void async_downgrade(asio::any_completion_handler<Lease::RenewSignature>) override;
    error_code lost_reason() const noexcept override;
    result<void> renew() override;
    ReleaseResult release(Outcome) noexcept override;
    void async_renew(asio::any_completion_handler<Lease::RenewSignature>) override;
    void async_release(Outcome, asio::any_completion_handler<Lease::ReleaseSignature>) override;
    void async_lost(asio::any_completion_handler<Lease::RenewSignature>) override;
    void drop(Outcome) noexcept override;
    bool forked() const noexcept { return engine_->forked(); }

    /// On the caller's thread, where the client was closed while this was granted on a lane: the
    /// same lane frees it.
    void give_back(spi::Lane&) noexcept;

    // --- engine thread
    void fire(boot_clock::time_point now) override;
    /// Null: it has ended meanwhile.
    spi::Held* prepare_renewal(boot_clock::time_point now);
    bool renewal_heard() const noexcept { return renewal_.renewal != spi::Held::Renewal::unknown; }
    void renewed();
    /// Once, after the caller that ended the lease has submitted it.
    void start_release();
    /// Instead, on the caller's thread: the engine had ended before it was asked.
    void refuse_release();
    spi::Held* prepare_release(boot_clock::time_point now);
    /// See Acquisition: the same for a release that waits in this client.
    void queued_here() noexcept { queued_here_ = true; }
    void unanswered(boot_clock::time_point now);
    bool to_be_sent();
    bool release_heard() const noexcept { return release_.released != ReleaseResult::unreachable; }
    void release_answered();
    void lose(error_code why, bool give_back);
    void renew_now();
    /// Somebody wants it.
    void asked();
    /// The engine is gone: a release that was not answered is left to the ttl.
    void forget();
    /// False once released or lost, also by another thread a moment ago.
    bool lives() const noexcept;
    bool at_risk() const noexcept { return state_.load() == LeaseState::at_risk; }

private:
    using Renewing = asio::any_completion_handler<void(error_code)>;
    /// What to notify of the outcome of a release, at most one of the two, and until when.
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

    void schedule_next();
    /// When to renew what the server set at `base` for so long.
    void plan_renewal(boot_clock::time_point base, milliseconds length) noexcept;
    void stop_telling(std::uint64_t id);
    void tell(Event::Kind, error_code = {}, std::optional<boot_clock::time_point> since = {});
    /// Once, however it ended. Nobody relied on it after its validity.
    void count_end(boot_clock::time_point) noexcept;
    spi::Held held(boot_clock::time_point now, boot_clock::time_point deadline) const;
    /// The lease counts as shared from here on. The answer, unless a renewal has to say it.
    std::optional<error_code> begin_downgrade() noexcept;
    /// When this call ended the lease; nothing when it was over already.
    std::optional<boot_clock::time_point> begin_release(Outcome) noexcept;
    /// For the one caller that ended the lease: the engine gives it back.
    void submit_release();
    ReleaseResult release_on(spi::Lane&, Outcome, boot_clock::time_point now);
    void release_in_background();
    /// The request is sent now: from here on the caller waits for one request time-out.
    void begin_answer_time();
    /// Until when a caller waits to be notified; for ever when none does.
    boot_clock::time_point answer_by() const noexcept;
    void renew_in_background(Renewing);
    /// Once; what is not answered by then is not waited for.
    void answer_release(ReleaseResult);
    void stop_releasing();
    std::shared_ptr<LeaseImpl> self() {
        return std::static_pointer_cast<LeaseImpl>(shared_from_this());
    }

    const std::shared_ptr<Engine> engine_;
    std::shared_ptr<Handle> handle_;
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
    const boot_clock::time_point asked_until_;  // how long a fixed lease has to last

    mutable std::mutex mutex_;  // guards what follows, up to the engine's part
    error_code reason_;
    std::stop_source stop_{std::nostopstate}, asked_stop_{std::nostopstate};  // made when asked for
    struct Losing {
        Losing(std::uint64_t i, asio::any_completion_handler<Lease::RenewSignature> h,
               const Engine& e)
            : id(i), callback(std::move(h), e.default_executor()) {}
        std::uint64_t id;
        Callback<Lease::RenewSignature> callback;
    };
    std::forward_list<Losing> losing_;  // the newest first
    std::uint64_t last_losing_ = 0;
    ReleaseResult released_ = ReleaseResult::unreachable;
    Outcome outcome_ = Outcome::done;
    bool asked_ = false, given_back_ = false;

    // The thread that ended the lease, then the engine thread.
    bool in_doubt_ = false;  // a request to release it was not answered
    std::optional<Ending> ending_;

    // Engine thread only, but set before the grant is scheduled.
    boot_clock::time_point next_renewal_, ends_at_;
    boot_clock::time_point next_release_;
    bool renewing_ = false, releasing_ = false, release_sent_ = false, queued_here_ = false;
    bool again_at_once_ = false;
    std::vector<Renewing> renewals_;
    spi::Held renewal_, release_;
    Backoff retry_;
    std::shared_ptr<LeaseImpl> keep_;
};

}  // namespace holdfast
