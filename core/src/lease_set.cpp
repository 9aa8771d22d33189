#include "holdfast/lease_set.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <list>
#include <mutex>

#include "complete_on_system.hpp"

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
    void heard(ReleaseResult answer) {
        {
            const std::lock_guard hold(mutex);
            worst = worse(worst, answer);
            if (--missing > 0) return;
        }
        callback.complete(error_code(), worst);
    }
    std::mutex mutex;
    std::size_t missing;
    ReleaseResult worst = ReleaseResult::released;
    SystemCallback<Lease::ReleaseSignature> callback;
};

}  // namespace

/// The first loss among the parts, and its waiters. Any thread.
class LeaseSet::Loss : public std::enable_shared_from_this<LeaseSet::Loss> {
public:
    using Handler = asio::any_completion_handler<Lease::RenewSignature>;

    void watch(Lease& part) {
        // On a thread for user code, as callbacks of Lease::lost are.
        part.async_lost(
            asio::bind_executor(asio::system_executor(),
                                [self = shared_from_this()](error_code ec) { self->end(ec); }));
    }
    std::stop_token token() const noexcept { return stop_.get_token(); }
    error_code reason() const {
        const std::lock_guard hold(mutex_);
        return over_ && *over_ != errc::not_held ? *over_ : error_code();
    }
    void wait(Handler handler) {
        std::unique_lock hold(mutex_);
        if (over_) {
            const error_code ec = *over_;
            hold.unlock();
            return complete_on_system(std::move(handler), ec);
        }
        const std::uint64_t id = ++last_;
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected())
            slot.assign([weak = weak_from_this(), id](asio::cancellation_type) {
                if (const auto self = weak.lock()) self->forget(id);
            });
        waiting_.emplace_back(id, std::move(handler));
    }

private:
    struct Waiting {
        Waiting(std::uint64_t i, Handler h) : id(i), callback(std::move(h)) {}
        std::uint64_t id;
        SystemCallback<Lease::RenewSignature> callback;
    };

    void end(error_code why) {
        std::list<Waiting> all;
        {
            const std::lock_guard hold(mutex_);
            if (over_) return;
            over_ = why;
            all.swap(waiting_);
        }
        for (Waiting& w : all)
            w.callback.complete(why);
        if (why != errc::not_held) stop_.request_stop();
    }
    void forget(std::uint64_t id) {
        std::list<Waiting> one;
        {
            const std::lock_guard hold(mutex_);
            const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                         [&](const Waiting& w) { return w.id == id; });
            if (at == waiting_.end()) return;
            one.splice(one.begin(), waiting_, at);
        }
        one.front().callback.complete(make_error_code(errc::cancelled));
    }

    mutable std::mutex mutex_;
    std::optional<error_code> over_;
    std::stop_source stop_;
    std::list<Waiting> waiting_;
    std::uint64_t last_ = 0;
};

LeaseSet::LeaseSet() noexcept = default;
LeaseSet::LeaseSet(LeaseSet&&) noexcept = default;

LeaseSet& LeaseSet::operator=(LeaseSet&& other) noexcept {
    if (this == &other) return *this;
    drop();
    leases_ = std::move(other.leases_);
    of_part_ = std::move(other.of_part_);
    loss_ = std::move(other.loss_);
    return *this;
}

LeaseSet::~LeaseSet() {
    drop();
}

void LeaseSet::drop() noexcept {
    while (!leases_.empty())
        leases_.pop_back();
}

void LeaseSet::add(Lease lease) {
    if (!loss_) loss_ = std::make_shared<Loss>();
    leases_.push_back(std::move(lease));
    loss_->watch(leases_.back());
}

bool LeaseSet::valid() const noexcept {
    return !leases_.empty() &&
           std::all_of(leases_.begin(), leases_.end(), [](const Lease& l) { return l.valid(); });
}

LeaseState LeaseSet::state() const noexcept {
    constexpr LeaseState worst_first[] = {LeaseState::lost, LeaseState::released,
                                          LeaseState::at_risk, LeaseState::held};
    for (const LeaseState s : worst_first)
        for (const Lease& l : leases_)
            if (l.state() == s) return s;
    return LeaseState::empty;
}

boot_clock::time_point LeaseSet::valid_until() const noexcept {
    auto until = boot_clock::time_point::max();
    for (const Lease& l : leases_)
        until = std::min(until, l.valid_until());
    return leases_.empty() ? boot_clock::time_point() : until;
}

std::stop_token LeaseSet::lost() const {
    if (!loss_) return {};
    // A forked child has no thread that would report it.
    if (lost_reason() == errc::forked) return leases_.front().lost();
    return loss_->token();
}

error_code LeaseSet::lost_reason() const noexcept {
    for (const Lease& l : leases_)
        if (const error_code ec = l.lost_reason(); ec == errc::forked) return ec;
    if (loss_)
        if (const error_code ec = loss_->reason()) return ec;
    for (const Lease& l : leases_)
        if (const error_code ec = l.lost_reason()) return ec;
    return {};
}

ReleaseResult LeaseSet::release(Outcome outcome) noexcept {
    if (leases_.empty()) return ReleaseResult::already_expired;
    auto worst = ReleaseResult::released;
    for (auto l = leases_.rbegin(); l != leases_.rend(); ++l)
        worst = worse(worst, l->release(outcome));
    return worst;
}

void LeaseSet::start_release(Outcome outcome,
                             asio::any_completion_handler<Lease::ReleaseSignature> handler) {
    if (leases_.empty())
        return complete_on_system(std::move(handler), error_code(), ReleaseResult::already_expired);
    const auto all = std::make_shared<Releases>(leases_.size(), std::move(handler));
    for (auto l = leases_.rbegin(); l != leases_.rend(); ++l)
        l->async_release(outcome, asio::bind_executor(asio::system_executor(),
                                                      [all](error_code, ReleaseResult answer) {
                                                          all->heard(answer);
                                                      }));
}

void LeaseSet::start_lost(asio::any_completion_handler<Lease::RenewSignature> handler) {
    if (!loss_) return complete_on_system(std::move(handler), make_error_code(errc::not_held));
    loss_->wait(std::move(handler));
}

}  // namespace holdfast
