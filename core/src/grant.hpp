// One lease as core keeps it: the one renewal loop, loss, and release with its retries.
#pragma once
#include <list>
#include <mutex>
#include <stop_token>

#include "backoff.hpp"
#include "engine.hpp"
#include "holdfast/spi/lease_body.hpp"
#include "lock_info.hpp"

namespace holdfast {

/// held -> (renewal due) -> held | at risk -> ... -> lost | released.
///
/// Any thread may call what LeaseBody declares; the rest runs on the engine thread. Scheduled from
/// its first moment on, before the caller has seen the grant; after release or loss nothing of it
/// is renewed. It keeps itself alive only while its release is under way.
class Grant final : public spi::LeaseBody, public Timed {
public:
    struct Facts {
        FencingToken token;
        PreviousHolder previous;
        milliseconds ttl;  ///< what the server set for this grant
        boot_clock::time_point base;
        boot_clock::time_point valid_until;
        boot_clock::time_point started;  ///< when the call began, for the event
    };
    static std::shared_ptr<Grant> make(std::shared_ptr<Engine>, std::shared_ptr<Handle>,
                                       std::shared_ptr<const LockInfo>, std::string owner,
                                       std::shared_ptr<void> place, const Facts&);
    Grant(std::shared_ptr<Engine>, std::shared_ptr<Handle>, std::shared_ptr<const LockInfo>,
          std::string owner, std::shared_ptr<void> place, const Facts&);
    ~Grant() override;

    // --- spi::LeaseBody
    LeaseState state() const noexcept override;
    bool valid() const noexcept override;
    std::string_view name() const noexcept override { return info_->name; }
    std::string_view owner() const noexcept override { return owner_; }
    FencingToken token() const noexcept override { return token_; }
    PreviousHolder previous() const noexcept override { return previous_; }
    boot_clock::time_point valid_until() const noexcept override;
    std::stop_token lost() override;
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

    // --- where a release rides on a lane in halves, see ride.hpp
    spi::Held& riding() noexcept { return release_; }
    /// Its outcome is there. False: the engine has to go on from it; else the caller was told.
    bool ridden();

    // --- engine thread
    void fire(boot_clock::time_point now) override;
    spi::Held& prepare_renewal(boot_clock::time_point now);
    void renewed();
    /// Once, after the caller that ended the lease has submitted it.
    void start_release();
    /// Instead, on the caller's thread: the engine had ended before it was asked.
    void refuse_release();
    spi::Held& prepare_release(boot_clock::time_point now);
    void release_answered();
    void lose(error_code why, bool give_back);
    void renew_now();
    /// The engine is gone: a release that was not answered is left to the ttl.
    void forget();
    /// False once released or lost, also by another thread a moment ago.
    bool lives() const noexcept;
    bool at_risk() const noexcept { return state_.load() == LeaseState::at_risk; }
    bool owned_by(std::string_view owner) const noexcept { return owner_ == owner; }

private:
    using Renewing = asio::any_completion_handler<void(error_code)>;
    /// Who is told what became of a release, one of the two or nobody, and until when.
    struct Ending {
        Callback<Lease::ReleaseSignature> callback;
        std::shared_ptr<Latch<ReleaseResult>> latch;
        boot_clock::time_point answer_by;
    };

    void schedule_next();
    void stop_telling(std::uint64_t id);
    void tell(Event::Kind, error_code = {}, std::optional<boot_clock::time_point> since = {});
    spi::Held held(boot_clock::time_point now, boot_clock::time_point deadline) const;
    /// True when this call ended the lease; false when it was over already.
    bool begin_release(Outcome) noexcept;
    /// For the one caller that ended the lease: the engine gives it back.
    void submit_release();
    ReleaseResult release_on(spi::Lane&, Outcome, boot_clock::time_point now);
    /// A lane has done it; false: nobody knows.
    bool released_by_lane(const spi::Held&);
    void release_in_background();
    /// Until when somebody waits to be told; for ever when nobody does.
    boot_clock::time_point answer_by() const noexcept;
    void renew_in_background(Renewing);
    /// Once; nobody waits for what is not answered by then.
    void answer_release(ReleaseResult);
    void stop_releasing();
    std::shared_ptr<Grant> self() { return std::static_pointer_cast<Grant>(shared_from_this()); }

    const std::shared_ptr<Engine> engine_;
    std::shared_ptr<Handle> handle_;
    const std::shared_ptr<const LockInfo> info_;
    const std::string owner_;
    const std::shared_ptr<void> place_;
    const FencingToken token_;
    const PreviousHolder previous_;

    std::atomic<LeaseState> state_{LeaseState::held};
    std::atomic<boot_clock::rep> valid_until_;

    mutable std::mutex mutex_;  // guards what follows, up to the engine's part
    error_code reason_;
    std::optional<std::stop_source> stop_;
    struct Losing {
        std::uint64_t id;
        Callback<Lease::RenewSignature> callback;
    };
    std::list<Losing> losing_;  // not moved about: Boost 1.81 cannot move-assign a handler
    std::uint64_t last_losing_ = 0;
    ReleaseResult released_ = ReleaseResult::unreachable;
    Outcome outcome_ = Outcome::done;

    std::optional<Ending> ending_;  // whoever ended the lease, then the engine thread
    bool in_doubt_ = false;         // the same: a request to release it was not answered

    // Engine thread only, but set before the grant is scheduled.
    boot_clock::time_point next_renewal_, ends_at_;
    boot_clock::time_point next_release_;
    bool renewing_ = false, releasing_ = false, release_sent_ = false;
    bool again_at_once_ = false;
    std::vector<Renewing> renewals_;
    spi::Held renewal_, release_;
    Backoff retry_;
    std::shared_ptr<Grant> keep_;
};

}  // namespace holdfast
