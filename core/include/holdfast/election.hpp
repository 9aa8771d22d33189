// Leader election: to lead is to hold a lock, and the leader's value is the note of its lease.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/client.hpp"
#include "holdfast/lock.hpp"

namespace holdfast {

/// What any client can see of the leader.
struct Leader {
    std::string value;   ///< what it campaigned with
    std::string host;    ///< empty when a foreign client leads
    std::string owner;   ///< different in each term
    FencingToken token;  ///< higher in each term, where the backend has tokens
};

/// One candidate of one election. Thread-safe.
class HOLDFAST_EXPORT Election {
public:
    /// Errors: those of Client::make_lock.
    [[nodiscard]] static result<Election> make(const Client&, std::string_view name,
                                               const LockOptions& = {}, Diagnostics* = nullptr);

    /// Waits until this candidate leads. The Lease is its term: the candidate leads while it is
    /// valid, and resigns by releasing it. `value`, at most 128 bytes, is what others see; it does
    /// not change within a term. Blocking, cancellation and errors as Lock::acquire; would_deadlock
    /// while another campaign of this object is under way or its term lasts, bad_config for a
    /// longer value.
    [[nodiscard]] result<Lease> campaign(std::string_view value, AcquireOptions = {},
                                         std::stop_token = {});
    /// As campaign, without blocking, and completed as Lock::async_acquire.
    template <asio::completion_token_for<Lock::Signature> Token>
    auto async_campaign(std::string value, const AcquireOptions& options, Token&& token) {
        return asio::async_initiate<Token, Lock::Signature>(
            [this](auto h, std::string v, AcquireOptions o) {
                start_campaign(std::move(v), o, std::move(h));
            },
            token, std::move(value), options);
    }

    /// Who leads now; nothing when nobody does. Errors: those of Client::inspect.
    [[nodiscard]] result<std::optional<Leader>> leader(Diagnostics* = nullptr) const;
    /// Waits until the leader is another one than `known` (by its owner), or `wait` has passed
    /// (timed_out). It polls, every 50 ms at first and every second later, and may skip a term.
    [[nodiscard]] result<std::optional<Leader>> observe(const std::optional<Leader>& known,
                                                        milliseconds wait = forever,
                                                        std::stop_token = {}) const;

private:
    Election(Client, std::unique_ptr<Lock>);
    void start_campaign(std::string value, const AcquireOptions&,
                        asio::any_completion_handler<Lock::Signature>);
    error_code begin(std::string_view value, Diagnostics*) const;

    Client client_;
    std::unique_ptr<Lock> lock_;
    std::shared_ptr<std::atomic<bool>> busy_;  ///< a campaign is under way, or its term lasts
};

}  // namespace holdfast
