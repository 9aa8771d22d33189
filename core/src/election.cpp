#include "holdfast/election.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <condition_variable>
#include <mutex>

#include "complete_on_system.hpp"
#include "holdfast/spi/forwarding_lease.hpp"
#include "holdfast/spi/mapped_handler.hpp"

namespace holdfast {
namespace {

constexpr std::size_t longest_value = 128;

/// Frees the candidate for another campaign when its term has ended.
class Campaign {
public:
    explicit Campaign(std::shared_ptr<std::atomic<bool>> busy) noexcept : busy_(std::move(busy)) {}
    Campaign(Campaign&&) noexcept = default;
    Campaign& operator=(Campaign&&) = delete;
    ~Campaign() {
        if (busy_) *busy_ = false;
    }

private:
    std::shared_ptr<std::atomic<bool>> busy_;
};

class Term final : public spi::ForwardingLease {
public:
    Term(Lease inner, Campaign campaign) noexcept
        : ForwardingLease(std::move(inner)), campaign_(std::move(campaign)) {}
    ReleaseResult release(Outcome o) noexcept override {
        const auto answer = ForwardingLease::release(o);
        campaign_.reset();
        return answer;
    }
    void async_release(Outcome o,
                       asio::any_completion_handler<Lease::ReleaseSignature> h) override {
        campaign_.reset();
        ForwardingLease::async_release(o, std::move(h));
    }
    void drop(Outcome o) noexcept override {
        ForwardingLease::drop(o);
        campaign_.reset();
    }

private:
    std::optional<Campaign> campaign_;
};

}  // namespace

result<Election> Election::make(const Client& client, std::string_view name,
                                const LockOptions& options, Diagnostics* diagnostics) {
    auto lock = client.make_lock(name, options, diagnostics);
    if (!lock) return lock.error();
    return Election(std::make_shared<State>(client, std::move(*lock)));
}

/// Shared with campaigns that have not begun.
struct Election::State {
    State(Client c, std::unique_ptr<Lock> l) : client(std::move(c)), lock(std::move(l)) {}
    error_code begin(std::string_view value, Diagnostics* diagnostics) const {
        const auto refuse = [&](errc e, std::string what, std::string remedy) {
            if (diagnostics != nullptr)
                diagnostics->add(std::string(lock->name()), std::move(what), std::move(remedy));
            return make_error_code(e);
        };
        if (value.size() > longest_value)
            return refuse(errc::bad_config,
                          "a value of " + std::to_string(value.size()) + " bytes is too long",
                          "Use at most 128 bytes, for example an address.");
        if (busy->exchange(true))
            return refuse(errc::would_deadlock, "this candidate campaigns or leads already",
                          "Release the term first, or use an Election of its own.");
        return {};
    }
    const Client client;
    const std::unique_ptr<Lock> lock;
    /// A campaign or its term is under way.
    const std::shared_ptr<std::atomic<bool>> busy = std::make_shared<std::atomic<bool>>(false);
};

Election::Election(std::shared_ptr<State> state) : state_(std::move(state)) {}

result<Lease> Election::campaign(std::string_view value, AcquireOptions options,
                                 std::stop_token stop) {
    if (const auto ec = state_->begin(value, options.diagnostics)) return ec;
    Campaign campaign(state_->busy);
    options.note = value;
    auto lease = state_->lock->acquire(options, std::move(stop));
    if (!lease) return lease.error();
    return Lease(std::make_shared<Term>(std::move(*lease), std::move(campaign)));
}

void Election::start_campaign(State& state, std::string value, const AcquireOptions& asked,
                              asio::any_completion_handler<Lock::Signature> handler) {
    if (const auto ec = state.begin(value, asked.diagnostics))
        return complete_on_system(std::move(handler), ec, Lease());
    AcquireOptions options = asked;
    options.note = value;
    state.lock->async_acquire(
        options,
        spi::map_handler(std::move(handler), [campaign = Campaign(state.busy)](
                                                 auto&& h, error_code ec, Lease lease) mutable {
            if (!ec) lease = Lease(std::make_shared<Term>(std::move(lease), std::move(campaign)));
            { const Campaign done = std::move(campaign); }
            std::move(h)(ec, std::move(lease));
        }));
}

result<std::optional<Leader>> Election::leader(Diagnostics* diagnostics) const {
    const auto found = state_->client.inspect(state_->lock->name(), diagnostics);
    if (!found) return found.error();
    if (found->holders.empty()) return std::optional<Leader>();
    const Holder& h = found->holders.front();
    return std::optional<Leader>(Leader{h.note, h.host, h.owner, h.token});
}

result<std::optional<Leader>> Election::observe(const std::optional<Leader>& known,
                                                milliseconds wait, std::stop_token stop) const {
    constexpr milliseconds first{50}, last{1000};
    std::mutex mutex;
    std::condition_variable_any stopped;
    const auto begin = boot_clock::now();
    for (milliseconds pause = first;; pause = std::min(pause * 2, last)) {
        auto found = leader();
        if (!found) return found.error();
        const bool same =
            found->has_value() == known.has_value() && (!known || (*found)->owner == known->owner);
        if (!same) return found;
        const auto passed = std::chrono::floor<milliseconds>(boot_clock::now() - begin);
        if (passed >= wait) return make_error_code(errc::timed_out);
        std::unique_lock hold(mutex);
        stopped.wait_for(hold, stop, std::min(pause, wait - passed), [] { return false; });
        if (stop.stop_requested()) return make_error_code(errc::cancelled);
    }
}

}  // namespace holdfast
