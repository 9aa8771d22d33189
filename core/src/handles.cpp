#include "handles.hpp"

#include <algorithm>

#include "complete_on_system.hpp"

namespace holdfast::spi {

bool Handles::join() {
    const std::lock_guard hold(mutex_);
    if (open_ == 0) return false;
    ++open_, ++alive_;
    return true;
}

bool Handles::several() const {
    const std::lock_guard hold(mutex_);
    return open_ > 1;
}

bool Handles::close(One& one, Outcome& outcome) {
    const bool last = one.open && --open_ == 0;
    if (one.open) worst_ = std::max(worst_, outcome);
    one.open = false;
    outcome = worst_;
    return last;
}

std::optional<ReleaseResult> Handles::release(One& one, const LeaseBody& grant, Outcome& outcome) {
    const auto left_to_others = grant.state() == LeaseState::lost ? ReleaseResult::already_expired
                                                                  : ReleaseResult::released;
    const std::lock_guard hold(mutex_);
    const bool first_time = one.open;
    if (!close(one, outcome) && first_time) one.answer = left_to_others;
    return one.answer;
}

bool Handles::drop(One& one, Outcome& outcome) {
    const std::lock_guard hold(mutex_);
    const bool last = close(one, outcome);
    return (--alive_ == 0 || last) && !std::exchange(dropped_, true);
}

// --- LeaseBody
// ------------------------------------------------------------------------------------

LeaseBody::LeaseBody() noexcept = default;
LeaseBody::~LeaseBody() {
    delete handles_.load();
}

RequestError LeaseBody::last_error() const {
    return {};
}

result<void> LeaseBody::downgrade() {
    return make_error_code(errc::not_supported);
}

void LeaseBody::async_downgrade(asio::any_completion_handler<Lease::RenewSignature> h) {
    const auto done = downgrade();
    complete_on_system(std::move(h), done ? error_code() : done.error());
}

// --- SharedHandle
// ---------------------------------------------------------------------------------

LeaseState SharedHandle::state() const noexcept {
    return mine_.open ? grant_->state() : LeaseState::released;
}

result<void> SharedHandle::renew() {
    if (!mine_.open) return make_error_code(errc::not_held);
    return grant_->renew();
}

result<void> SharedHandle::downgrade() {
    if (!mine_.open) return make_error_code(errc::not_held);
    return grant_->downgrade();  // Lease has seen that there is no other handle
}

ReleaseResult SharedHandle::release(Outcome outcome) noexcept {
    const auto answer = all_->release(mine_, *grant_, outcome);
    return answer ? *answer : grant_->release(outcome);
}

void SharedHandle::async_renew(asio::any_completion_handler<Lease::RenewSignature> h) {
    if (!mine_.open) return complete_on_system(std::move(h), make_error_code(errc::not_held));
    grant_->async_renew(std::move(h));
}

void SharedHandle::async_downgrade(asio::any_completion_handler<Lease::RenewSignature> h) {
    if (!mine_.open) return complete_on_system(std::move(h), make_error_code(errc::not_held));
    grant_->async_downgrade(std::move(h));
}

void SharedHandle::async_release(Outcome outcome,
                                 asio::any_completion_handler<Lease::ReleaseSignature> h) {
    const auto answer = all_->release(mine_, *grant_, outcome);
    if (answer) return complete_on_system(std::move(h), error_code(), *answer);
    grant_->async_release(outcome, std::move(h));
}

void SharedHandle::async_lost(asio::any_completion_handler<Lease::RenewSignature> h) {
    if (!mine_.open) return complete_on_system(std::move(h), make_error_code(errc::not_held));
    grant_->async_lost(std::move(h));
}

void SharedHandle::drop(Outcome outcome) noexcept {
    if (all_->drop(mine_, outcome)) grant_->drop(outcome);
}

}  // namespace holdfast::spi
