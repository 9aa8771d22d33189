// Leader election: the leader holds a lock, and its value is the note of its lease.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "holdfast/client.hpp"
#include "holdfast/lock.hpp"
#include "holdfast/with_lock.hpp"

namespace holdfast {

/// The leader as any client sees it.
struct Leader {
    std::string value;   ///< what the leader campaigned with
    std::string host;    ///< empty when a foreign client leads
    std::string owner;   ///< different in each term
    FencingToken token;  ///< higher in each term, where the backend has tokens
};

/// One candidate of one election, made by Client::make_election. Thread-safe.
class HOLDFAST_EXPORT Election {
public:
    /// Waits until this candidate leads. The Lease is its term: the candidate leads while the lease
    /// is valid, and resigns by releasing it. Others see `value`, at most 128 bytes, which is fixed
    /// for the term and replaces AcquireOptions::note. Blocks, is cancelled and fails as
    /// Lock::acquire. Further errors: would_deadlock (another campaign or term of this object is
    /// under way), bad_config (the value is too long).
    [[nodiscard]] result<Lease> campaign(std::string_view value, AcquireOptions = {},
                                         std::stop_token = {}) const;
    /// As campaign, without blocking. Completion, cancellation and lifetime as Lock::async_acquire.
    template <asio::completion_token_for<Lock::Signature> Token = asio::deferred_t>
    [[nodiscard]] auto async_campaign(std::string value, const AcquireOptions& options = {},
                                      Token&& token = Token()) const {
        return asio::async_initiate<Token, Lock::Signature>(
            [state = state_](auto h, std::string v, AcquireOptions o) mutable {
                // Not kept for the wait: the client closes with its last handle.
                const auto candidate = std::move(state);
                start_campaign(*candidate, std::move(v), o, std::move(h));
            },
            token, std::move(value), options);
    }
    template <asio::completion_token_for<Lock::Signature> Token>
    [[nodiscard]] auto async_campaign(std::string value, Token&& token) const {
        return async_campaign(std::move(value), AcquireOptions(), std::forward<Token>(token));
    }

    /// Returns the current leader, or none. Blocks for at most the request time-out. Errors: those
    /// of Client::inspect.
    [[nodiscard]] result<std::optional<Leader>> leader(Diagnostics* = nullptr) const;
    /// Campaigns with `value`, runs `f` for the term, and resigns. Otherwise as with_lock(): `f`
    /// should end when its stop_token is requested, and the result does not count when the term
    /// was lost before.
    template <UnderLock F>
    [[nodiscard]] auto lead(std::string_view value, const AcquireOptions& options, F&& f,
                            std::stop_token stop = {}) const {
        return detail::run_under(campaign(value, options, std::move(stop)), std::forward<F>(f));
    }
    /// Waits for the term without a limit.
    template <UnderLock F>
    [[nodiscard]] auto lead(std::string_view value, F&& f) const {
        return detail::run_under(campaign(value), std::forward<F>(f));
    }

    /// As leader, without blocking. Completion and lifetime as Client::async_inspect.
    using LeaderSignature = void(error_code, std::optional<Leader>);
    template <asio::completion_token_for<LeaderSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_leader(Diagnostics* diagnostics = nullptr,
                                    Token&& token = Token()) const {
        return asio::async_initiate<Token, LeaderSignature>(
            [state = state_, diagnostics](auto h) mutable {
                const auto candidate = std::move(state);
                start_leader(*candidate, diagnostics, std::move(h));
            },
            token);
    }
    template <asio::completion_token_for<LeaderSignature> Token>
    [[nodiscard]] auto async_leader(Token&& token) const {
        return async_leader(nullptr, std::forward<Token>(token));
    }
    /// Waits until the leader is another than `known` (compared by owner), and returns it. With
    /// Capability::watch the server notifies of a change, and a term that ends without a word is
    /// noticed within a ttl; otherwise it polls every 50 ms at first and every second later. It may
    /// miss a term that was shorter than a request. As with an acquisition, a server that does not
    /// answer ends the call after one request time-out; once it has answered, the observer waits on
    /// through interruptions, which are reported by Event::unreachable. Errors: timed_out (`wait`
    /// has passed), cancelled, and those of leader(); unavailable also if `wait` has passed and the
    /// last look was not answered.
    [[nodiscard]] result<std::optional<Leader>> observe(const std::optional<Leader>& known,
                                                        milliseconds wait = forever,
                                                        std::stop_token = {}) const;
    /// As observe, without blocking. Completion, cancellation and lifetime as Lock::async_acquire.
    template <asio::completion_token_for<LeaderSignature> Token = asio::deferred_t>
    [[nodiscard]] auto async_observe(std::optional<Leader> known, milliseconds wait = forever,
                                     Token&& token = Token()) const {
        return asio::async_initiate<Token, LeaderSignature>(
            [state = state_, wait](auto h, std::optional<Leader> k) mutable {
                const auto candidate = std::move(state);
                start_observe(*candidate, std::move(k), wait, std::move(h));
            },
            token, std::move(known));
    }
    template <asio::completion_token_for<LeaderSignature> Token>
    [[nodiscard]] auto async_observe(std::optional<Leader> known, Token&& token) const {
        return async_observe(std::move(known), forever, std::forward<Token>(token));
    }

    Election(Election&&) noexcept = default;
    Election& operator=(Election&&) noexcept = default;
    Election(const Election&) = delete;
    Election& operator=(const Election&) = delete;

private:
    friend class Client;
    struct State;
    explicit Election(std::shared_ptr<State>);
    using LeaderHandler = asio::any_completion_handler<LeaderSignature>;
    static void start_campaign(State&, std::string value, const AcquireOptions&,
                               asio::any_completion_handler<Lock::Signature>);
    static void start_leader(State&, Diagnostics*, LeaderHandler);
    static void start_observe(State&, std::optional<Leader> known, milliseconds wait,
                              LeaderHandler);

    std::shared_ptr<State> state_;
};

}  // namespace holdfast
