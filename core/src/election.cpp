#include "holdfast/election.hpp"

#include <algorithm>
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
    return Election(client, std::move(*lock));
}

Election::Election(Client client, std::unique_ptr<Lock> lock)
    : client_(std::move(client)),
      lock_(std::move(lock)),
      busy_(std::make_shared<std::atomic<bool>>(false)) {}

error_code Election::begin(std::string_view value, Diagnostics* diagnostics) const {
    const auto refuse = [&](errc e, std::string what, std::string remedy) {
        if (diagnostics != nullptr)
            diagnostics->add(std::string(lock_->name()), std::move(what), std::move(remedy));
        return make_error_code(e);
    };
    if (value.size() > longest_value)
        return refuse(errc::bad_config,
                      "a value of " + std::to_string(value.size()) + " bytes is too long",
                      "Use at most 128 bytes, for example an address.");
    if (busy_->exchange(true))
        return refuse(errc::would_deadlock, "this candidate campaigns or leads already",
                      "Release the term first, or use an Election of its own.");
    return {};
}

result<Lease> Election::campaign(std::string_view value, AcquireOptions options,
                                 std::stop_token stop) {
    if (const auto ec = begin(value, options.diagnostics)) return ec;
    Campaign campaign(busy_);
    options.note = value;
    auto lease = lock_->acquire(options, std::move(stop));
    if (!lease) return lease.error();
    return Lease(std::make_shared<Term>(std::move(*lease), std::move(campaign)));
}

void Election::start_campaign(std::string value, const AcquireOptions& asked,
                              asio::any_completion_handler<Lock::Signature> handler) {
    if (const auto ec = begin(value, asked.diagnostics))
        return complete_on_system(std::move(handler), ec, Lease());
    AcquireOptions options = asked;
    options.note = value;
    lock_->async_acquire(
        options,
        spi::map_handler(std::move(handler), [campaign = Campaign(busy_)](auto&& h, error_code ec,
                                                                          Lease lease) mutable {
            if (!ec) lease = Lease(std::make_shared<Term>(std::move(lease), std::move(campaign)));
            { const Campaign done = std::move(campaign); }
            std::move(h)(ec, std::move(lease));
        }));
}

result<std::optional<Leader>> Election::leader(Diagnostics* diagnostics) const {
    const auto found = client_.inspect(lock_->name(), diagnostics);
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
