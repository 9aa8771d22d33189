// Several handles of one grant (Lease::share). The last handle to be released releases the grant.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "holdfast/detail/fork_guarded.hpp"
#include "holdfast/spi/lease_body.hpp"

namespace holdfast::spi {

/// Owned by the shared grant. Thread-safe. In a forked child each handle is lost, as the grant is.
class Handles {
public:
    /// One handle: open until it is released or dropped.
    struct One {
        std::atomic<bool> open{true};
        /// Its answer once it is closed; nullopt: it was the last one, so the grant answers.
        std::optional<ReleaseResult> answer;
    };
    One first;  ///< the Lease that the acquisition returned

    /// Adds a handle. False: the last one was closed before, or this is a forked child.
    bool join();
    /// That of the handle, while no other is open and none joins: one that joins before is
    /// not downgraded, and one that joins later reads. Errors: would_deadlock (several are open).
    std::optional<error_code> begin_downgrade(LeaseBody& handle);
    /// Closes one and returns its answer, the same each time. Nullopt: it was the last one, so the
    /// caller releases the grant with the worst outcome of all, which `outcome` becomes.
    std::optional<ReleaseResult> release(One&, const LeaseBody& grant, Outcome& outcome);
    /// Drops one. True: this caller must drop the grant (once), since this was the last handle
    /// alive or the last open one.
    bool drop(One&, Outcome& outcome);

private:
    struct Count {
        /// True: it was the last open one.
        bool close(One&, Outcome& outcome);
        unsigned open = 1, alive = 1;
        bool dropped = false;
        Outcome worst = Outcome::done;
    };
    ForkGuarded<Count> count_;
};

/// The body of a Lease that share() made.
class SharedHandle final : public LeaseBody {
public:
    SharedHandle(std::shared_ptr<LeaseBody> grant, Handles& all) noexcept
        : grant_(std::move(grant)), all_(&all) {}
    const std::shared_ptr<LeaseBody>& grant() const noexcept { return grant_; }

    LeaseState state() const noexcept override;
    bool valid() const noexcept override { return mine_.open && grant_->valid(); }
    std::string_view name() const noexcept override { return grant_->name(); }
    std::string_view owner() const noexcept override { return grant_->owner(); }
    FencingToken token() const noexcept override { return grant_->token(); }
    PreviousHolder previous() const noexcept override { return grant_->previous(); }
    Mode mode() const noexcept override { return grant_->mode(); }
    std::uint32_t permits() const noexcept override { return grant_->permits(); }
    boot_clock::time_point valid_until() const noexcept override { return grant_->valid_until(); }
    std::stop_token lost() override { return grant_->lost(); }
    error_code lost_reason() const noexcept override { return grant_->lost_reason(); }
    RequestError last_error() const override { return grant_->last_error(); }
    result<void> renew() override;
    std::optional<error_code> begin_downgrade() override;
    std::stop_token release_requested() override { return grant_->release_requested(); }
    ReleaseResult release(Outcome) noexcept override;
    void async_renew(asio::any_completion_handler<Lease::RenewSignature>) override;
    void complete(asio::any_completion_handler<Lease::RenewSignature>, error_code) override;
    void async_release(Outcome, asio::any_completion_handler<Lease::ReleaseSignature>) override;
    void async_lost(asio::any_completion_handler<Lease::RenewSignature>) override;
    void drop(Outcome) noexcept override;

private:
    const std::shared_ptr<LeaseBody> grant_;
    Handles* const all_;  // lives as long as the grant
    Handles::One mine_;
};

}  // namespace holdfast::spi
