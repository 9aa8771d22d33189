// A Lease is the proof that this one acquisition is held: a movable value, released by its
// destructor. Everything of one acquisition lives here, nothing of it in the Lock.
//
// clang-format off
//  state     entered by                              valid lost()  renew()   release()
//  empty     default construction, moved from        no    never   not_held  already_expired
//  held      acquire, an answered renewal            yes   no      renews    released
//  at_risk   a renewal unanswered, still valid       yes   no      renews    released, unreachable
//  lost      validity over, or the server said so    no    yes     lost      already_expired, owned_by_other
//  released  release()                               no    no      not_held  as the first time
// clang-format on
//
// One thread may use a Lease while others read it (state, valid, valid_until, lost); moving and
// destroying need exclusive use.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/export.hpp"
#include "holdfast/fencing_token.hpp"
#include "holdfast/kind.hpp"

namespace holdfast {

namespace asio = boost::asio;

enum class LeaseState : std::uint8_t { empty, held, at_risk, lost, released };

/// What became of the holder before: `abandoned` released without having finished (an exception, a
/// failed command), `crashed` never released. After both, work may be half done.
enum class PreviousHolder : std::uint8_t { unknown, none, released, abandoned, crashed };

/// What the holder says about its work when it lets go; the next holder reads it as
/// previous_holder().
enum class Outcome : std::uint8_t { done, abandoned };

/// `unreachable`: the server did not answer; the release is retried in the background until it is
/// answered or the ttl has freed the lock anyway.
enum class ReleaseResult : std::uint8_t { released, already_expired, owned_by_other, unreachable };

HOLDFAST_EXPORT std::string_view to_string(LeaseState) noexcept;
HOLDFAST_EXPORT std::string_view to_string(PreviousHolder) noexcept;
HOLDFAST_EXPORT std::string_view to_string(ReleaseResult) noexcept;

namespace spi {
class LeaseBody;
class ForwardingLease;
class Handles;
}  // namespace spi

class [[nodiscard, gnu::visibility("default")]] Lease {
public:
    Lease() noexcept = default;
    Lease(Lease &&) noexcept;
    /// Gives up the lease held so far, as the destructor does.
    Lease& operator=(Lease&&) noexcept;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    /// Hands the release to the engine and returns: no waiting for the answer, never throws.
    /// Retries go on in the background; Client::close waits for them, at most its close_grace. Call
    /// release() where the outcome matters. Run by stack unwinding it releases as abandoned.
    ~Lease();

    /// Held and still valid *now*: reads the clock, so the first answer after a pause is right.
    [[nodiscard]] bool valid() const noexcept;
    LeaseState state() const noexcept;
    std::string_view name() const noexcept;
    std::string_view owner_id() const noexcept;
    /// None for permits of a semaphore. Those of shared holders are above that of every earlier
    /// exclusive holder and below that of every later one.
    FencingToken fencing_token() const noexcept;
    Mode mode() const noexcept;
    std::uint32_t permits() const noexcept;
    PreviousHolder previous_holder() const noexcept;
    /// Until when nobody else can hold it, as far as is known now. Grows with each renewal.
    boot_clock::time_point valid_until() const noexcept;
    /// Requested once, at the latest at valid_until(), never by release(). Callbacks run on a
    /// thread of Holdfast's user pool: they may block without delaying any other lease's renewal,
    /// timer or loss. They must not destroy this Lease. Never requested for an empty Lease.
    std::stop_token lost() const;
    /// Why it was lost; no error while it is not.
    error_code lost_reason() const noexcept;

    /// Renews at once instead of at ttl/3. Blocks for at most the request time-out.
    /// Errors: not_held, lost, revoked, unavailable (still held, at risk), forked, closed.
    [[nodiscard]] result<void> renew();
    /// Gives the lock up and says what the server answered. Blocks for at most the request
    /// time-out. Idempotent: later calls repeat the first answer.
    ReleaseResult release(Outcome = Outcome::done) noexcept;

    /// One more handle of this grant, which is released when all of them have released it:
    /// earlier ones answer `released` without a request, and `abandoned` of any of them is what the
    /// next holder reads. Loss is that of all. Thread-safe among handles, not with the release of
    /// this one. Errors: lost, not_held.
    [[nodiscard]] result<Lease> share() const;
    /// From exclusive to shared, without letting another exclusive holder in between. The lease
    /// counts as shared from here on, whatever the answer: later renewals repeat what was not
    /// answered. The other direction deadlocks as soon as two want it, so there is none. Blocks for
    /// at most the request time-out, or twice that while a renewal is under way, which ends first.
    /// Errors: not_held, lost, unavailable (as after renew), not_supported, would_deadlock (there
    /// are more handles of this grant, and one may be writing), forked, closed.
    [[nodiscard]] result<void> downgrade();
    /// Requested once when somebody has asked for the lock (Client::request_release), at the latest
    /// with the next renewal. The holder decides. Callbacks as those of lost().
    std::stop_token release_requested() const;

    using RenewSignature = void(error_code);
    using ReleaseSignature = void(error_code, ReleaseResult);
    /// As renew(), without blocking. Not cancellable: ends at the request time-out.
    template <asio::completion_token_for<RenewSignature> Token>
    auto async_renew(Token && token) {
        return asio::async_initiate<Token, RenewSignature>(
            [body = body_](auto h) { start_renew(body, std::move(h)); }, token);
    }
    /// As downgrade(), without blocking. Not cancellable: ends when downgrade() would.
    template <asio::completion_token_for<RenewSignature> Token>
    auto async_downgrade(Token && token) {
        return asio::async_initiate<Token, RenewSignature>(
            [body = body_](auto h) { start_downgrade(body, std::move(h)); }, token);
    }
    /// As release(), without blocking. Not cancellable: ends at the request time-out.
    template <asio::completion_token_for<ReleaseSignature> Token>
    auto async_release(Outcome outcome, Token && token) {
        return asio::async_initiate<Token, ReleaseSignature>(
            [body = body_, outcome](auto h) { start_release(body, outcome, std::move(h)); }, token);
    }
    /// The work is done.
    template <asio::completion_token_for<ReleaseSignature> Token>
    auto async_release(Token && token) {
        return async_release(Outcome::done, std::forward<Token>(token));
    }
    /// Completes with the reason when the lease is lost, with not_held when it is released, with
    /// cancelled when cancelled. For coroutines, which cannot await a stop_token.
    template <asio::completion_token_for<RenewSignature> Token>
    auto async_lost(Token && token) {
        return asio::async_initiate<Token, RenewSignature>(
            [body = body_](auto h) { start_lost(body, std::move(h)); }, token);
    }

    /// For Locks: backends' and decorators' own.
    explicit Lease(std::shared_ptr<spi::LeaseBody> body) noexcept;

private:
    using Body = std::shared_ptr<spi::LeaseBody>;
    static void start_downgrade(const Body&, asio::any_completion_handler<RenewSignature>);
    static void start_renew(const Body&, asio::any_completion_handler<RenewSignature>);
    static void start_release(const Body&, Outcome, asio::any_completion_handler<ReleaseSignature>);
    static void start_lost(const Body&, asio::any_completion_handler<RenewSignature>);
    friend class spi::ForwardingLease;
    /// Whose handles are counted: this grant, or that behind a handle.
    static const Body& grant_of(const Body&) noexcept;
    static spi::Handles& handles_of(const Body& grant);
    static bool has_let_go(const Body&) noexcept;
    /// What the handle answers that was the first; nothing: the grant answers.
    static std::optional<ReleaseResult> let_go(const Body&, Outcome&) noexcept;
    static error_code no_downgrade(const Body&) noexcept;
    void drop() noexcept;
    void drop(Outcome) noexcept;

    Body body_;
    int exceptions_ = 0;  // uncaught when the lease was made: more of them in ~Lease mean unwinding
};

}  // namespace holdfast
