#include "holdfast/lease.hpp"

#include <exception>

#include "complete_on_system.hpp"
#include "handles.hpp"
#include "holdfast/detail/fork_generation.hpp"

namespace holdfast {

Lease::Lease(std::shared_ptr<Impl> body) noexcept
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
    spi::Handles* const others = body_->handles_.load();
    if (others == nullptr || others->drop(others->first, outcome)) body_->drop(outcome);
    body_.reset();
}

// After share() the first handle may be released while others are held.
bool Lease::has_let_go(const Body& body) noexcept {
    const spi::Handles* const others = body->handles_.load();
    return others != nullptr && !others->first.open;
}

bool Lease::valid() const noexcept {
    return body_ && !has_let_go(body_) && body_->valid();
}
LeaseState Lease::state() const noexcept {
    if (!body_) return LeaseState::empty;
    return has_let_go(body_) ? LeaseState::released : body_->state();
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
Mode Lease::mode() const noexcept {
    return body_ ? body_->mode() : Mode::exclusive;
}
std::uint32_t Lease::permits() const noexcept {
    return body_ ? body_->permits() : 0;
}
PreviousHolder Lease::previous_holder() const noexcept {
    return body_ ? body_->previous() : PreviousHolder::unknown;
}
boot_clock::time_point Lease::valid_until() const noexcept {
    return body_ ? body_->valid_until() : boot_clock::time_point();
}
std::chrono::nanoseconds Lease::time_left() const noexcept {
    const auto now = boot_clock::now();
    const auto until = valid() ? valid_until() : now;
    return std::max(until - now, std::chrono::nanoseconds::zero());
}
std::stop_token Lease::lost() const {
    return body_ ? body_->lost() : std::stop_token();
}
error_code Lease::lost_reason() const noexcept {
    return body_ ? body_->lost_reason() : error_code();
}

RequestError Lease::last_error() const {
    return body_ ? body_->last_error() : RequestError();
}

std::stop_token Lease::release_requested() const {
    return body_ ? body_->release_requested() : std::stop_token();
}

result<void> Lease::renew() {
    if (!body_ || has_let_go(body_)) return make_error_code(errc::not_held);
    return body_->renew();
}

std::optional<ReleaseResult> Lease::let_go(const Body& body, Outcome& outcome) noexcept {
    spi::Handles* const others = body->handles_.load();
    if (others == nullptr) return std::nullopt;
    return others->release(others->first, *body, outcome);
}

ReleaseResult Lease::release(Outcome outcome) noexcept {
    if (!body_) return ReleaseResult::already_expired;
    const auto answer = let_go(body_, outcome);
    return answer ? *answer : body_->release(outcome);
}

const Lease::Body& Lease::grant_of(const Body& body) noexcept {
    const auto* handle = dynamic_cast<const spi::SharedHandle*>(body.get());
    return handle != nullptr ? handle->grant() : body;
}

// --- several handles
// ------------------------------------------------------------------------------

result<Lease> Lease::share() const {
    const LeaseState s = state();
    if (s == LeaseState::lost) return lost_reason() ? lost_reason() : make_error_code(errc::lost);
    if (s != LeaseState::held && s != LeaseState::at_risk) return make_error_code(errc::not_held);
    const Body& grant = grant_of(body_);
    spi::Handles& all = grant->handles();
    if (!all.join()) return make_error_code(errc::not_held);
    return Lease(std::make_shared<spi::SharedHandle>(grant, all));
}

std::optional<error_code> Lease::begin_downgrade(const Body& body) {
    if (!body || has_let_go(body)) return make_error_code(errc::not_held);
    return grant_of(body)->handles().begin_downgrade(*body);
}

result<void> Lease::downgrade() {
    const auto answer = begin_downgrade(body_);
    if (!answer) return body_->renew();
    if (*answer) return *answer;
    return {};
}

// --- without blocking
// ------------------------------------------------------------------------------

void Lease::complete(const Body& body, asio::any_completion_handler<RenewSignature> h,
                     error_code ec) {
    if (body) return body->complete(std::move(h), ec);
    complete_on_system(std::move(h), ec);
}

void Lease::start_downgrade(const Body& body, asio::any_completion_handler<RenewSignature> h) {
    const auto answer = begin_downgrade(body);
    // A child of a fork() completes nothing, as the renewal knows.
    if (!answer || *answer == errc::forked) return body->async_renew(std::move(h));
    complete(body, std::move(h), *answer);
}

void Lease::start_renew(const Body& body, asio::any_completion_handler<RenewSignature> h) {
    if (body && !has_let_go(body)) return body->async_renew(std::move(h));
    complete(body, std::move(h), make_error_code(errc::not_held));
}

void Lease::start_release(const Body& body, Outcome outcome,
                          asio::any_completion_handler<ReleaseSignature> h) {
    if (!body)
        return complete_on_system(std::move(h), error_code(), ReleaseResult::already_expired);
    if (const auto answer = let_go(body, outcome))
        return complete_on_system(std::move(h), error_code(), *answer);
    body->async_release(outcome, std::move(h));
}

void Lease::start_lost(const Body& body, asio::any_completion_handler<RenewSignature> h) {
    if (body && !has_let_go(body)) return body->async_lost(std::move(h));
    complete(body, std::move(h), make_error_code(errc::not_held));
}

}  // namespace holdfast
