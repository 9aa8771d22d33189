// The implementation of a Lease. Core has one for backends' grants; decorators derive their own.
#pragma once
#include <atomic>
#include <optional>

#include "holdfast/lease.hpp"

namespace holdfast {

namespace spi {
class Handles;
}

class HOLDFAST_EXPORT Lease::Impl {
public:
    Impl() noexcept;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    virtual ~Impl();
    virtual LeaseState state() const noexcept = 0;
    virtual bool valid() const noexcept = 0;
    virtual std::string_view name() const noexcept = 0;
    virtual std::string_view owner() const noexcept = 0;
    virtual FencingToken token() const noexcept = 0;
    virtual PreviousHolder previous() const noexcept = 0;
    virtual Mode mode() const noexcept { return Mode::exclusive; }
    virtual std::uint32_t permits() const noexcept { return 1; }
    virtual boot_clock::time_point valid_until() const noexcept = 0;
    virtual std::stop_token lost() = 0;
    virtual error_code lost_reason() const noexcept = 0;
    /// Default: no error.
    virtual RequestError last_error() const;
    virtual result<void> renew() = 0;
    /// From here on mode() is shared. Returns the answer to a downgrade; nullopt: the next renewal
    /// brings it. Called while no other handle is open, and none is made. Default: not_supported.
    virtual std::optional<error_code> begin_downgrade();
    /// Default: never requested.
    virtual std::stop_token release_requested() { return {}; }
    virtual ReleaseResult release(Outcome) noexcept = 0;
    virtual void async_renew(asio::any_completion_handler<Lease::RenewSignature>) = 0;
    virtual void async_release(Outcome, asio::any_completion_handler<Lease::ReleaseSignature>) = 0;
    virtual void async_lost(asio::any_completion_handler<Lease::RenewSignature>) = 0;
    /// Completes a handler, never inside this call. Default: on a thread of its own, unless the
    /// handler names an executor.
    virtual void complete(asio::any_completion_handler<Lease::RenewSignature>, error_code);
    /// For ~Lease: hands the release over and does not wait.
    virtual void drop(Outcome) noexcept = 0;

protected:
    // What a decorator does with the lease inside, beyond what any user of it may do.
    static std::optional<error_code> begin_downgrade_of(Lease& l) {
        return Lease::begin_downgrade(l.body_);
    }
    static void complete_by(Lease& l, asio::any_completion_handler<RenewSignature> h,
                            error_code ec) {
        Lease::complete(l.body_, std::move(h), ec);
    }
    static void drop_of(Lease& l, Outcome o) noexcept { l.drop(o); }

private:
    friend class Lease;
    spi::Handles& handles();
    std::atomic<spi::Handles*> handles_{nullptr};  ///< owned; null until Lease::share
};

namespace spi {
using LeaseBody = Lease::Impl;
}

}  // namespace holdfast
