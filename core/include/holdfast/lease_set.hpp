// A LeaseSet is the proof that several locks are held together: all of it is valid, or it is lost.
#pragma once
#include <memory>
#include <vector>

#include "holdfast/lease.hpp"

namespace holdfast {

/// What acquire_all() gives: a movable value whose destructor releases all of it, in the reverse of
/// the order of acquisition. Threads as with a Lease: one uses it, others may read it.
class [[nodiscard, gnu::visibility("default")]] LeaseSet {
public:
    LeaseSet() noexcept;
    LeaseSet(LeaseSet &&) noexcept;
    /// Gives up what was held so far, as the destructor does.
    LeaseSet& operator=(LeaseSet&&) noexcept;
    LeaseSet(const LeaseSet&) = delete;
    LeaseSet& operator=(const LeaseSet&) = delete;
    ~LeaseSet();

    /// How many parts it was asked for.
    std::size_t size() const noexcept {
        return of_part_.size();
    }
    /// The lease of the part with this number, from 0, in the order that the caller has given.
    /// Parts that named one lock have one lease.
    const Lease& operator[](std::size_t part) const {
        return leases_[of_part_.at(part)];
    }

    /// Every part of it is held and valid now.
    [[nodiscard]] bool valid() const noexcept;
    /// The worst of the parts': lost, released, at_risk, held; empty for an empty set.
    LeaseState state() const noexcept;
    /// Until when nobody else can hold any of it: the earliest of the parts'.
    boot_clock::time_point valid_until() const noexcept;
    /// Requested once, when the first part is lost; never by release(). Callbacks as those of
    /// Lease::lost. Never requested for an empty set.
    std::stop_token lost() const;
    /// Why the first one was; no error while none is.
    error_code lost_reason() const noexcept;

    /// Releases all of it, in reverse, and gives the worst answer: owned_by_other, already_expired,
    /// unreachable, released. Blocks for at most one request time-out for each part. Idempotent.
    ReleaseResult release(Outcome = Outcome::done) noexcept;

    /// As release(), without blocking. Not cancellable: ends at the request time-out.
    template <asio::completion_token_for<Lease::ReleaseSignature> Token>
    auto async_release(Outcome outcome, Token && token) {
        return asio::async_initiate<Token, Lease::ReleaseSignature>(
            [this, outcome](auto h) { start_release(outcome, std::move(h)); }, token);
    }
    /// The work is done.
    template <asio::completion_token_for<Lease::ReleaseSignature> Token>
    auto async_release(Token && token) {
        return async_release(Outcome::done, std::forward<Token>(token));
    }
    /// Completes with the reason when the first part is lost, with not_held when it is released,
    /// with cancelled when cancelled.
    template <asio::completion_token_for<Lease::RenewSignature> Token>
    auto async_lost(Token && token) {
        return asio::async_initiate<Token, Lease::RenewSignature>(
            [this](auto h) { start_lost(std::move(h)); }, token);
    }

private:
    friend class Gathering;
    class Loss;
    /// One more lease, after those that it has. They are all watched for loss from here on.
    void add(Lease);
    void start_release(Outcome, asio::any_completion_handler<Lease::ReleaseSignature>);
    void start_lost(asio::any_completion_handler<Lease::RenewSignature>);
    void drop() noexcept;

    std::vector<Lease> leases_;         // in the order of acquisition
    std::vector<std::size_t> of_part_;  // which of them each part has
    std::shared_ptr<Loss> loss_;
};

}  // namespace holdfast
