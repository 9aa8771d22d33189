#include "holdfast/lease.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/system_executor.hpp>
#include <exception>

#include "holdfast/spi/fork_generation.hpp"
#include "holdfast/spi/lease_body.hpp"

namespace holdfast {

Lease::Lease(std::shared_ptr<spi::LeaseBody> body) noexcept
    : body_(std::move(body)), exceptions_(std::uncaught_exceptions()) {}

Lease::Lease(Lease&& other) noexcept
    : body_(std::move(other.body_)), exceptions_(other.exceptions_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
    if (this == &other) return *this;
    drop();
    body_ = std::move(other.body_);
    exceptions_ = other.exceptions_;
    return *this;
}

Lease::~Lease() {
    drop();
}

void Lease::drop() noexcept {
    if (!body_) return;
    const bool unwinding = std::uncaught_exceptions() > exceptions_;
    drop(unwinding ? Outcome::abandoned : Outcome::done);
}

void Lease::drop(Outcome outcome) noexcept {
    if (!body_) return;
    body_->drop(outcome);
    body_.reset();
}

bool Lease::valid() const noexcept {
    return body_ && body_->valid();
}
LeaseState Lease::state() const noexcept {
    return body_ ? body_->state() : LeaseState::empty;
}
std::string_view Lease::name() const noexcept {
    return body_ ? body_->name() : std::string_view();
}
std::string_view Lease::owner_id() const noexcept {
    return body_ ? body_->owner() : std::string_view();
}
FencingToken Lease::fencing_token() const noexcept {
    return body_ ? body_->token() : FencingToken();
}
PreviousHolder Lease::previous_holder() const noexcept {
    return body_ ? body_->previous() : PreviousHolder::unknown;
}
boot_clock::time_point Lease::valid_until() const noexcept {
    return body_ ? body_->valid_until() : boot_clock::time_point();
}
std::stop_token Lease::lost() const {
    return body_ ? body_->lost() : std::stop_token();
}
error_code Lease::lost_reason() const noexcept {
    return body_ ? body_->lost_reason() : error_code();
}

result<void> Lease::renew() {
    if (!body_) return make_error_code(errc::not_held);
    return body_->renew();
}

ReleaseResult Lease::release(Outcome outcome) noexcept {
    return body_ ? body_->release(outcome) : ReleaseResult::already_expired;
}

namespace {

// An empty lease has no engine to complete on: the handler's own executor has to do.
template <class Signature, class... Args>
void complete_empty(asio::any_completion_handler<Signature> h, Args... args) {
    const asio::any_completion_executor system = asio::system_executor();
    const auto where = asio::get_associated_executor(h, system);
    asio::dispatch(asio::system_executor(), [where, h = std::move(h), args...]() mutable {
        asio::dispatch(where, [h = std::move(h), args...]() mutable { std::move(h)(args...); });
    });
}

}  // namespace

void Lease::start_renew(const Body& body, asio::any_completion_handler<RenewSignature> h) {
    if (body) return body->async_renew(std::move(h));
    complete_empty(std::move(h), make_error_code(errc::not_held));
}

void Lease::start_release(const Body& body, Outcome outcome,
                          asio::any_completion_handler<ReleaseSignature> h) {
    if (body) return body->async_release(outcome, std::move(h));
    complete_empty(std::move(h), error_code(), ReleaseResult::already_expired);
}

void Lease::start_lost(const Body& body, asio::any_completion_handler<RenewSignature> h) {
    if (body) return body->async_lost(std::move(h));
    complete_empty(std::move(h), make_error_code(errc::not_held));
}

}  // namespace holdfast
