#include "handles.hpp"

#include <algorithm>

#include "complete_on_system.hpp"

namespace holdfast {
namespace spi {

bool Handles::join() {
    const auto count = count_.access();
    if (!count || count->open == 0) return false;
    ++count->open, ++count->alive;
    return true;
}

std::optional<error_code> Handles::begin_downgrade(LeaseBody& handle) {
    const auto count = count_.access();
    if (!count) return make_error_code(errc::forked);
    if (count->open > 1) return make_error_code(errc::would_deadlock);
    return handle.begin_downgrade();
}

bool Handles::Count::close(One& one, Outcome& outcome) {
    const bool last = one.open && --open == 0;
    if (one.open) worst = std::max(worst, outcome);
    one.open = false;
    outcome = worst;
    return last;
}

std::optional<ReleaseResult> Handles::release(One& one, const LeaseBody& grant, Outcome& outcome) {
    auto left_to_others = ReleaseResult::released;
    if (grant.state() == LeaseState::lost)
        left_to_others = grant.lost_reason() == errc::revoked ? ReleaseResult::owned_by_other
                                                              : ReleaseResult::already_expired;
    const auto count = count_.access();
    if (!count) return std::nullopt;  // the grant answers as it does to a child
    const bool first_time = one.open;
    if (!count->close(one, outcome) && first_time) one.answer = left_to_others;
    return one.answer;
}

bool Handles::drop(One& one, Outcome& outcome) {
    const auto count = count_.access();
    if (!count) return true;  // the grant knows what a child may do
    const bool last = count->close(one, outcome);
    return (--count->alive == 0 || last) && !std::exchange(count->dropped, true);
}

// --- LeaseBody
// ------------------------------------------------------------------------------------

}  // namespace spi

Lease::Impl::Impl() noexcept = default;
Lease::Impl::~Impl() {
    delete handles_.load();
}

RequestError Lease::Impl::last_error() const {
    return {};
}

std::optional<error_code> Lease::Impl::begin_downgrade() {
    return make_error_code(errc::not_supported);
}

void Lease::Impl::complete(asio::any_completion_handler<RenewSignature> h, error_code ec) {
    complete_on_system(std::move(h), ec);
}

spi::Handles& Lease::Impl::handles() {
    spi::Handles* all = handles_.load();
    if (all != nullptr) return *all;
    auto fresh = std::make_unique<spi::Handles>();
    return handles_.compare_exchange_strong(all, fresh.get()) ? *fresh.release() : *all;
}

namespace spi {

// --- SharedHandle
// ---------------------------------------------------------------------------------

LeaseState SharedHandle::state() const noexcept {
    return mine_.open ? grant_->state() : LeaseState::released;
}

result<void> SharedHandle::renew() {
    if (!mine_.open) return make_error_code(errc::not_held);
    return grant_->renew();
}

std::optional<error_code> SharedHandle::begin_downgrade() {
    if (!mine_.open) return make_error_code(errc::not_held);
    return grant_->begin_downgrade();
}

ReleaseResult SharedHandle::release(Outcome outcome) noexcept {
    const auto answer = all_->release(mine_, *grant_, outcome);
    return answer ? *answer : grant_->release(outcome);
}

void SharedHandle::async_renew(asio::any_completion_handler<Lease::RenewSignature> h) {
    if (!mine_.open) return complete(std::move(h), make_error_code(errc::not_held));
    grant_->async_renew(std::move(h));
}

void SharedHandle::complete(asio::any_completion_handler<Lease::RenewSignature> h, error_code ec) {
    grant_->complete(std::move(h), ec);
}

void SharedHandle::async_release(Outcome outcome,
                                 asio::any_completion_handler<Lease::ReleaseSignature> h) {
    const auto answer = all_->release(mine_, *grant_, outcome);
    if (answer) return complete_on_system(std::move(h), error_code(), *answer);
    grant_->async_release(outcome, std::move(h));
}

void SharedHandle::async_lost(asio::any_completion_handler<Lease::RenewSignature> h) {
    if (!mine_.open) return complete(std::move(h), make_error_code(errc::not_held));
    grant_->async_lost(std::move(h));
}

void SharedHandle::drop(Outcome outcome) noexcept {
    if (all_->drop(mine_, outcome)) grant_->drop(outcome);
}

}  // namespace spi
}  // namespace holdfast
