#include "holdfast/lease.hpp"

#include <boost/asio/detached.hpp>
#include <string>

#include "call.hpp"
#include "failure.hpp"
#include "handles.hpp"
#include "holdfast/lease_set.hpp"
#include "sized.hpp"

namespace holdfast::c {

Failure of_release(ReleaseResult r, error_code ec, std::string words) {
    switch (r) {
        case ReleaseResult::released:
            return {};
        case ReleaseResult::already_expired:
            return {errc::lost, "the lease was lost before its release"};
        case ReleaseResult::owned_by_other:
            return {errc::lost,
                    "another client holds the lock: the lease was lost before its release"};
        case ReleaseResult::unreachable:
            break;
    }
    Failure why(ec ? ec : make_error_code(errc::unavailable));
    if (!words.empty()) why.words = std::move(words);
    return why;
}

namespace {

static_assert(HF_STATE_HELD == static_cast<int>(LeaseState::held) &&
              HF_STATE_RELEASED == static_cast<int>(LeaseState::released) &&
              HF_PREVIOUS_NONE == static_cast<int>(PreviousHolder::none) &&
              HF_PREVIOUS_CRASHED == static_cast<int>(PreviousHolder::crashed));

/// The lease of this part; null: there is none.
const Lease* part_of(const hf_lease& l, std::size_t part) {
    if (const auto* set = std::get_if<LeaseSet>(&l.held))
        return part < set->size() ? &(*set)[part] : nullptr;
    return part == 0 ? std::get_if<Lease>(&l.held) : nullptr;
}

Failure not_for_sets() {
    return {errc::not_supported, "a lease of several locks cannot do that"};
}

hf_facts facts_of(const Lease& lease) {
    hf_facts f = HF_FACTS;
    f.state = static_cast<int>(lease.state());
    f.previous = static_cast<int>(lease.previous_holder());
    f.reason = Failure(lease.lost_reason()).code;
    f.shared = lease.mode() == Mode::shared ? 1 : 0;
    f.permits = lease.permits();
    f.asked = lease.release_requested().stop_requested() ? 1 : 0;
    f.left = std::chrono::duration_cast<milliseconds>(lease.time_left()).count();
    f.token = lease.fencing_token().value;
    const std::string_view owner = lease.owner_id();
    owner.copy(f.owner, sizeof f.owner - 1);
    return f;
}

/// Renews or downgrades, and waits for the answer.
template <class F>
int change(hf_lease* lease, hf_error* error, F f) noexcept {
    return guarded(error, [&] {
        auto* one = std::get_if<Lease>(&lease->held);
        if (one == nullptr) return not_for_sets();
        const auto done = f(*one);
        if (done) return Failure();
        Failure why(done.error());
        if (auto last = one->last_error(); !last.text.empty()) why.words = std::move(last.text);
        return why;
    });
}

/// Begins what hf_lease_start names. `held`: a Lease or a LeaseSet.
void begin(auto& held, int what, auto handler) {
    switch (what) {
        case HF_RELEASE:
            return held.async_release(Outcome::done, std::move(handler));
        case HF_ABANDON:
            return held.async_release(Outcome::abandoned, std::move(handler));
        case HF_WATCH:
            return held.async_lost(std::move(handler));
        default:
            break;
    }
    if constexpr (requires { held.async_renew(std::move(handler)); }) {
        if (what == HF_RENEW)
            held.async_renew(std::move(handler));
        else
            held.async_downgrade(std::move(handler));
    }
}

}  // namespace
}  // namespace holdfast::c

using namespace holdfast;

hf_lease::~hf_lease() {
    const auto give_up = [](auto& one) {
        if (one.valid()) one.async_release(Outcome::abandoned, asio::detached);
    };
    c::guarded(nullptr, [&] {
        if (!forked()) std::visit(give_up, held);
        return c::Failure();
    });
}

int hf_lease_valid(const hf_lease* lease) {
    return std::visit([](const auto& held) { return held.valid(); }, lease->held) ? 1 : 0;
}

int hf_lease_look(const hf_lease* lease, size_t part, hf_facts* facts, hf_error* error) {
    return c::guarded(error, [&] {
        const Lease* one = c::part_of(*lease, part);
        if (one == nullptr) return c::Failure(errc::bad_config, "the lease has no such part");
        c::give(*facts, c::facts_of(*one));
        return c::Failure();
    });
}

int hf_lease_renew(hf_lease* lease, hf_error* error) {
    return c::change(lease, error, [](Lease& one) { return one.renew(); });
}

int hf_lease_downgrade(hf_lease* lease, hf_error* error) {
    return c::change(lease, error, [](Lease& one) { return one.downgrade(); });
}

int hf_lease_release(hf_lease* lease, int abandoned, hf_error* error) {
    return c::guarded(error, [&] {
        if (lease->forked()) return c::Failure(make_error_code(errc::forked));
        const Outcome outcome = abandoned != 0 ? Outcome::abandoned : Outcome::done;
        const auto answer =
            std::visit([&](auto& held) { return held.release(outcome); }, lease->held);
        RequestError why;
        if (const auto* one = std::get_if<Lease>(&lease->held)) why = one->last_error();
        return c::of_release(answer, why.code, std::move(why.text));
    });
}

int hf_lease_start(hf_lease* lease, int what, hf_queue* queue, uint64_t* call, hf_error* error) {
    return c::guarded(error, [&] {
        if (lease->forked() || queue->queue->forked())
            return c::Failure(make_error_code(errc::forked));
        if (what < HF_RENEW || what > HF_WATCH)
            return c::Failure(errc::bad_config, "hf_lease_start does nothing of that kind");
        if (what <= HF_DOWNGRADE && std::holds_alternative<LeaseSet>(lease->held))
            return c::not_for_sets();
        c::Call::start(queue->queue, *call, [&](auto handler, Diagnostics&) {
            std::visit([&](auto& held) { c::begin(held, what, std::move(handler)); }, lease->held);
        });
        return c::Failure();
    });
}

void hf_lease_free(hf_lease* lease) {
    delete lease;
}
