#include "holdfast/lease_set.hpp"

#include <algorithm>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "complete_on_system.hpp"
#include "holdfast/detail/fork_guarded.hpp"

namespace holdfast {
namespace {

/// Orders answers from best to worst: the last two mean that the work may have collided.
int badness(ReleaseResult r) noexcept {
    switch (r) {
        case ReleaseResult::released:
            return 0;
        case ReleaseResult::unreachable:
            return 1;
        case ReleaseResult::already_expired:
            return 2;
        case ReleaseResult::owned_by_other:
            return 3;
    }
    return 0;
}

ReleaseResult worse(ReleaseResult a, ReleaseResult b) noexcept {
    return badness(a) < badness(b) ? b : a;
}

/// The answers to one asynchronous release of all parts.
struct Releases {
    Releases(std::size_t n, asio::any_completion_handler<Lease::ReleaseSignature> h)
        : missing(n), callback(std::move(h)) {}
    void heard(error_code ec, ReleaseResult answer) {
        {
            const std::lock_guard hold(mutex);
            worst = worse(worst, answer);
            if (!error) error = ec;
            if (--missing > 0) return;
        }
        callback.complete(error, worst);
    }
    std::mutex mutex;
    std::size_t missing;
    ReleaseResult worst = ReleaseResult::released;
    error_code error;
    SystemCallback<Lease::ReleaseSignature> callback;
};

using LossHandler = asio::any_completion_handler<Lease::RenewSignature>;

/// The first loss among the parts, and its waiters. Any thread.
class Loss : public std::enable_shared_from_this<Loss> {
public:
    void watch(Lease& part) {
        // On a thread for user code, as callbacks of Lease::lost are.
        part.async_lost(
            asio::bind_executor(asio::system_executor(),
                                [self = shared_from_this()](error_code ec) { self->end(ec); }));
    }
    std::stop_token token() const noexcept { return stop_.get_token(); }
    error_code reason() const {
        const auto now = now_.access();
        return now && now->over && *now->over != errc::not_held ? *now->over : error_code();
    }
    /// In a forked child nobody would end the wait.
    void wait(LossHandler handler) {
        auto now = now_.access();
        if (!now) return;
        if (now->over) {
            const error_code ec = *now->over;
            now.end();
            return complete_on_system(std::move(handler), ec);
        }
        const std::uint64_t id = ++now->last;
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected())
            slot.assign([weak = weak_from_this(), id](asio::cancellation_type) {
                if (const auto self = weak.lock()) self->forget(id);
            });
        now->waiting.emplace_back(id, std::move(handler));
    }

private:
    struct Waiting {
        Waiting(std::uint64_t i, LossHandler h) : id(i), callback(std::move(h)) {}
        std::uint64_t id;
        SystemCallback<Lease::RenewSignature> callback;
    };

    void end(error_code why) {
        std::list<Waiting> all;
        {
            const auto now = now_.access();
            if (!now || now->over) return;
            now->over = why;
            all.swap(now->waiting);
        }
        for (Waiting& w : all)
            w.callback.complete(why);
        if (why != errc::not_held) stop_.request_stop();
    }
    void forget(std::uint64_t id) {
        std::list<Waiting> one;
        {
            const auto now = now_.access();
            if (!now) return;
            const auto at = std::find_if(now->waiting.begin(), now->waiting.end(),
                                         [&](const Waiting& w) { return w.id == id; });
            if (at == now->waiting.end()) return;
            one.splice(one.begin(), now->waiting, at);
        }
        one.front().callback.complete(make_error_code(errc::cancelled));
    }

    struct Now {
        std::optional<error_code> over;
        std::list<Waiting> waiting;
        std::uint64_t last = 0;
    };
    ForkGuarded<Now> now_;
    std::stop_source stop_;
};

}  // namespace

/// Shared with operations that have not begun.
struct LeaseSet::State {
    explicit State(std::vector<std::size_t> parts) : of_part(std::move(parts)) {}
    std::vector<Lease> leases;               // in the order of acquisition
    const std::vector<std::size_t> of_part;  // index of each part's lease
    const std::shared_ptr<Loss> loss = std::make_shared<Loss>();
};

LeaseSet::LeaseSet() noexcept = default;
LeaseSet::LeaseSet(LeaseSet&&) noexcept = default;
LeaseSet::LeaseSet(std::vector<std::size_t> of_part)
    : state_(std::make_shared<State>(std::move(of_part))) {}

LeaseSet& LeaseSet::operator=(LeaseSet&& other) noexcept {
    if (this == &other) return *this;
    drop();
    state_ = std::move(other.state_);
    return *this;
}

LeaseSet::~LeaseSet() {
    drop();
}

void LeaseSet::drop() noexcept {
    while (state_ && !state_->leases.empty())
        state_->leases.pop_back();
}

void LeaseSet::add(Lease lease) {
    state_->leases.push_back(std::move(lease));
    state_->loss->watch(state_->leases.back());
}

std::span<const Lease> LeaseSet::leases() const noexcept {
    if (!state_) return {};
    return state_->leases;
}

std::size_t LeaseSet::size() const noexcept {
    return state_ ? state_->of_part.size() : 0;
}

const Lease& LeaseSet::operator[](std::size_t part) const noexcept {
    return state_->leases[state_->of_part[part]];
}
const Lease& LeaseSet::at(std::size_t part) const {
    if (part >= size()) throw std::out_of_range("holdfast::LeaseSet::at");
    return (*this)[part];
}

bool LeaseSet::valid() const noexcept {
    const auto all = leases();
    return !all.empty() &&
           std::all_of(all.begin(), all.end(), [](const Lease& l) { return l.valid(); });
}

LeaseState LeaseSet::state() const noexcept {
    constexpr LeaseState worst_first[] = {LeaseState::lost, LeaseState::released,
                                          LeaseState::at_risk, LeaseState::held};
    for (const LeaseState s : worst_first)
        for (const Lease& l : leases())
            if (l.state() == s) return s;
    return LeaseState::empty;
}

boot_clock::time_point LeaseSet::valid_until() const noexcept {
    auto until = boot_clock::time_point::max();
    for (const Lease& l : leases())
        until = std::min(until, l.valid_until());
    return leases().empty() ? boot_clock::time_point() : until;
}

std::chrono::nanoseconds LeaseSet::time_left() const noexcept {
    auto left = empty() ? std::chrono::nanoseconds::zero() : std::chrono::nanoseconds::max();
    for (const Lease& l : leases())
        left = std::min(left, l.time_left());
    return left;
}

std::stop_token LeaseSet::lost() const {
    if (leases().empty()) return {};
    // A forked child has no thread that would report it.
    if (lost_reason() == errc::forked) return leases().front().lost();
    return state_->loss->token();
}

error_code LeaseSet::lost_reason() const noexcept {
    for (const Lease& l : leases())
        if (const error_code ec = l.lost_reason(); ec == errc::forked) return ec;
    if (state_)
        if (const error_code ec = state_->loss->reason()) return ec;
    for (const Lease& l : leases())
        if (const error_code ec = l.lost_reason()) return ec;
    return {};
}

ReleaseResult LeaseSet::release(Outcome outcome) noexcept {
    if (leases().empty()) return ReleaseResult::already_expired;
    auto worst = ReleaseResult::released;
    for (auto l = state_->leases.rbegin(); l != state_->leases.rend(); ++l)
        worst = worse(worst, l->release(outcome));
    return worst;
}

void LeaseSet::start_release(const std::shared_ptr<State>& state, Outcome outcome,
                             asio::any_completion_handler<Lease::ReleaseSignature> handler) {
    if (!state || state->leases.empty())
        return complete_on_system(std::move(handler), error_code(), ReleaseResult::already_expired);
    auto& leases = state->leases;
    const auto all = std::make_shared<Releases>(leases.size(), std::move(handler));
    const auto heard = [all](error_code ec, ReleaseResult answer) { all->heard(ec, answer); };
    for (auto l = leases.rbegin(); l != leases.rend(); ++l)
        l->async_release(outcome, asio::bind_executor(asio::system_executor(), heard));
}

void LeaseSet::start_lost(const std::shared_ptr<State>& state, LossHandler handler) {
    if (!state) return complete_on_system(std::move(handler), make_error_code(errc::not_held));
    state->loss->wait(std::move(handler));
}

}  // namespace holdfast
