// For decorators: a lease that forwards to another one, except for what a derived class overrides.
#pragma once
#include "holdfast/spi/lease_body.hpp"

namespace holdfast::spi {

/// Owns a lease and forwards every call to it. A decorator derives from it, overrides what differs,
/// and returns Lease(std::make_shared<Derived>(std::move(inner))).
///
/// An override that releases something of its own must cover release, async_release and drop:
/// exactly one of them is called first.
class HOLDFAST_EXPORT ForwardingLease : public LeaseBody {
public:
    explicit ForwardingLease(Lease inner) noexcept : inner_(std::move(inner)) {}

    LeaseState state() const noexcept override { return inner_.state(); }
    bool valid() const noexcept override { return inner_.valid(); }
    std::string_view name() const noexcept override { return inner_.name(); }
    std::string_view owner() const noexcept override { return inner_.owner_id(); }
    FencingToken token() const noexcept override { return inner_.fencing_token(); }
    PreviousHolder previous() const noexcept override { return inner_.previous_holder(); }
    Mode mode() const noexcept override { return inner_.mode(); }
    std::uint32_t permits() const noexcept override { return inner_.permits(); }
    boot_clock::time_point valid_until() const noexcept override { return inner_.valid_until(); }
    std::stop_token lost() override { return inner_.lost(); }
    error_code lost_reason() const noexcept override { return inner_.lost_reason(); }
    RequestError last_error() const override { return inner_.last_error(); }
    result<void> renew() override { return inner_.renew(); }
    std::optional<error_code> begin_downgrade() override { return begin_downgrade_of(inner_); }
    std::stop_token release_requested() override { return inner_.release_requested(); }
    ReleaseResult release(Outcome outcome) noexcept override { return inner_.release(outcome); }
    void async_renew(asio::any_completion_handler<Lease::RenewSignature> h) override {
        inner_.async_renew(std::move(h));
    }
    void async_release(Outcome outcome,
                       asio::any_completion_handler<Lease::ReleaseSignature> h) override {
        inner_.async_release(outcome, std::move(h));
    }
    void async_lost(asio::any_completion_handler<Lease::RenewSignature> h) override {
        inner_.async_lost(std::move(h));
    }
    void complete(asio::any_completion_handler<Lease::RenewSignature> h, error_code ec) override {
        complete_by(inner_, std::move(h), ec);
    }
    void drop(Outcome outcome) noexcept override { drop_of(inner_, outcome); }

protected:
    Lease& inner() noexcept { return inner_; }
    const Lease& inner() const noexcept { return inner_; }

private:
    Lease inner_;
};

}  // namespace holdfast::spi
