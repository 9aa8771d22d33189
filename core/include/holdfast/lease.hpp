// A Lease proves that one acquisition is held: a movable value whose destructor releases the lock.
// All state of the acquisition is here, none of it in the Lock.
//
// clang-format off
//  state     entered by                              valid lost()  renew()   release()
//  empty     default construction, moved from        no    never   not_held  already_expired
//  held      acquire, an answered renewal            yes   no      renews    released, unreachable
//  at_risk   a renewal failed, still valid           yes   no      renews    released, unreachable
//  lost      validity over, or the server said so    no    yes     lost      already_expired, owned_by_other
//  released  release()                               no    no      not_held  as the first time
// clang-format on
//
// One thread may use a Lease while others read it (state, valid, valid_until, lost). Moving and
// destroying it need exclusive use.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/export.hpp"
#include "holdfast/fencing_token.hpp"
#include "holdfast/kind.hpp"

namespace holdfast {

namespace asio = boost::asio;

/// The states of a Lease; see there.
enum class LeaseState : std::uint8_t { empty, held, at_risk, lost, released };

/// How the previous holder ended. `none`: the server remembers none. `unknown`: the server does not
/// know. After `abandoned` (released without finishing: an exception, a failed command) and
/// `crashed` (never released) the work may be half done.
enum class PreviousHolder : std::uint8_t { unknown, none, released, abandoned, crashed };

/// How the holder's work ended, given with the release. The next holder reads it as
/// previous_holder().
enum class Outcome : std::uint8_t { done, abandoned };

/// `already_expired`, `owned_by_other`: the lease was lost before, and the work may have collided.
/// `unreachable`: the server did not answer; Holdfast repeats the release in the background until
/// it is answered or the server has freed the lock by itself. Or the server refused it for good (a
/// missing permission), and frees the lock by itself. Lease::last_error() says which.
enum class ReleaseResult : std::uint8_t { released, already_expired, owned_by_other, unreachable };

HOLDFAST_EXPORT std::string_view to_string(LeaseState) noexcept;
HOLDFAST_EXPORT std::string_view to_string(PreviousHolder) noexcept;
HOLDFAST_EXPORT std::string_view to_string(Outcome) noexcept;
HOLDFAST_EXPORT std::string_view to_string(ReleaseResult) noexcept;

/// Why a renewal or a release failed.
struct RequestError {
    error_code code;   ///< no error: none has failed
    std::string text;  ///< the words of the server or the backend; may be empty
};

class [[nodiscard, gnu::visibility("default")]] Lease {
public:
    Lease() noexcept = default;
    Lease(Lease &&) noexcept;
    /// Releases the lease held so far, as the destructor does.
    Lease& operator=(Lease&&) noexcept;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    /// Hands the release to the engine without waiting for the answer; never throws. The engine
    /// retries it in the background, and Client::close waits for it, at most close_grace. Call
    /// release() where the outcome matters. During stack unwinding the lease is released as
    /// abandoned. The last handle of a client closes it, and blocks as Client::close does.
    ~Lease();

    /// Whether it is held and valid *now*. Reads the clock, so the first answer after a pause is
    /// right.
    [[nodiscard]] bool valid() const noexcept;
    LeaseState state() const noexcept;
    std::string_view name() const noexcept;
    std::string_view owner_id() const noexcept;
    /// Zero for permits of a semaphore, and where the backend has no fencing. The tokens of shared
    /// holders are above that of every earlier exclusive holder and below that of every later one.
    FencingToken fencing_token() const noexcept;
    Mode mode() const noexcept;
    std::uint32_t permits() const noexcept;
    PreviousHolder previous_holder() const noexcept;
    /// Until when no other client can hold it, as known now. An answered renewal extends it, or
    /// shortens it when the server set a shorter ttl.
    boot_clock::time_point valid_until() const noexcept;
    /// How long until then; zero when it is not held.
    std::chrono::nanoseconds time_left() const noexcept;
    /// Requested once when the lease is lost, at the latest at valid_until(); never by release(),
    /// and never for an empty Lease. Callbacks run on a thread of Holdfast's user pool: they may
    /// block without delaying the renewal, timer or loss of another lease. They must not destroy
    /// this Lease.
    std::stop_token lost() const;
    /// Why it was lost; no error while it is not.
    error_code lost_reason() const noexcept;
    /// Why the last renewal or release failed: `unavailable` without an answer, else what the
    /// server refused it with (denied, a native code, ...), or reported as the loss (lost, revoked,
    /// ...). No error after one that succeeded. After the validity has ended it still says why the
    /// renewals failed. The text holds no secret and no control character. Thread-safe.
    RequestError last_error() const;

    /// Renews now instead of at a third of the ttl, or joins a renewal under way. Blocks for at
    /// most the request time-out. Errors: not_held, lost_reason() of a lost lease (lost, revoked,
    /// ...), unavailable (still held, at risk; last_error() says why), would_deadlock (called on
    /// the engine's thread), forked, closed.
    [[nodiscard]] result<void> renew();
    /// Releases the lock and returns the server's answer. Blocks for at most the request time-out,
    /// and a second more if overloaded. Idempotent: later calls return the answer known by then.
    ReleaseResult release(Outcome = Outcome::done) noexcept;

    /// Returns one more handle of this grant. The last handle to be released releases the grant;
    /// the others answer without a request (`released`, or `already_expired` after a loss). The
    /// next holder reads `abandoned` if any handle was released so. A loss is that of all handles.
    /// Thread-safe among handles, but not with the release of this one. Errors: lost_reason() of a
    /// lost lease, not_held.
    [[nodiscard]] result<Lease> share() const;
    /// Turns exclusive into shared, without another exclusive holder in between. From here on the
    /// lease counts as shared, even without an answer: later renewals repeat the request. Does
    /// nothing if it is shared already. The other direction would deadlock as soon as two holders
    /// want it, so there is none. Blocks for at most the request time-out, or twice that while a
    /// renewal is under way. Errors: those of renew(), not_supported, would_deadlock (the grant has
    /// other handles, and one may be writing).
    [[nodiscard]] result<void> downgrade();
    /// Requested once after Client::request_release has asked this holder, at the latest with the
    /// next answered renewal. The holder decides. Callbacks run as those of lost().
    std::stop_token release_requested() const;

    using RenewSignature = void(error_code);
    using ReleaseSignature = void(error_code, ReleaseResult);
    /// Renews without blocking; ends at the request time-out. Completes as Lock::async_acquire
    /// does, but is not cancellable. The Lease may be destroyed before completion.
    template <asio::completion_token_for<RenewSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_renew(Token && token = Token()) {
        return asio::async_initiate<Token, RenewSignature>(
            [body = body_](auto h) { start_renew(body, std::move(h)); }, token);
    }
    /// As downgrade(), without blocking; ends when downgrade() would. Otherwise as async_renew().
    template <asio::completion_token_for<RenewSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_downgrade(Token && token = Token()) {
        return asio::async_initiate<Token, RenewSignature>(
            [body = body_](auto h) { start_downgrade(body, std::move(h)); }, token);
    }
    /// As release(), without blocking; ends at the request time-out. With
    /// ReleaseResult::unreachable the error code is `unavailable`, or the server's refusal (denied,
    /// ...); else there is none. Otherwise as async_renew().
    template <asio::completion_token_for<ReleaseSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_release(Outcome outcome = Outcome::done, Token && token = Token()) {
        return asio::async_initiate<Token, ReleaseSignature>(
            [body = body_, outcome](auto h) { start_release(body, outcome, std::move(h)); }, token);
    }
    template <asio::completion_token_for<ReleaseSignature> Token>
    [[nodiscard]] auto async_release(Token && token) {
        return async_release(Outcome::done, std::forward<Token>(token));
    }
    /// Completes with lost_reason() when the lease is lost, with not_held when it is released, and
    /// with cancelled when cancelled. For coroutines, which cannot await a stop_token.
    template <asio::completion_token_for<RenewSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_lost(Token && token = Token()) const {
        return asio::async_initiate<Token, RenewSignature>(
            [body = body_](auto h) { start_lost(body, std::move(h)); }, token);
    }

    /// What a decorator of a Lock derives its leases from: docs/extending.md.
    class Impl;
    explicit Lease(std::shared_ptr<Impl>) noexcept;

private:
    using Body = std::shared_ptr<Impl>;
    static void start_downgrade(const Body&, asio::any_completion_handler<RenewSignature>);
    static void start_renew(const Body&, asio::any_completion_handler<RenewSignature>);
    static void start_release(const Body&, Outcome, asio::any_completion_handler<ReleaseSignature>);
    static void start_lost(const Body&, asio::any_completion_handler<RenewSignature>);
    /// The grant whose handles are counted: this body, or the one behind a handle.
    static const Body& grant_of(const Body&) noexcept;
    static bool has_let_go(const Body&) noexcept;
    /// What the first handle answers once it is released; nullopt: the grant answers.
    static std::optional<ReleaseResult> let_go(const Body&, Outcome&) noexcept;
    /// See Impl; while no other handle is open, and none is made.
    static std::optional<error_code> begin_downgrade(const Body&);
    static void complete(const Body&, asio::any_completion_handler<RenewSignature>, error_code);
    void drop() noexcept;
    void drop(Outcome) noexcept;

    Body body_;
    int exceptions_ = 0;  // in flight when the lease was made; more in ~Lease mean unwinding
};

}  // namespace holdfast
