#include "holdfast/acquire_all.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "async_acquisition.hpp"
#include "backend_lock.hpp"
#include "complete_on_system.hpp"
#include "holdfast/detail/fork_guarded.hpp"
#include "places.hpp"

namespace holdfast {

/// The state of one acquire_all(): the next lock, what is held, and how it ends. It sends no
/// requests itself, so the blocking and the asynchronous form share it.
class Gathering {
public:
    Gathering(const std::vector<Part>& parts, const AcquireAllOptions& options)
        : options_(options),
          deadline_(after(boot_clock::now(), std::max(options.wait, milliseconds::zero()))),
          parts_(parts),
          order_(parts.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::vector<std::string> places;
        for (const Part& p : parts_)
            places.push_back(p.lock->place());
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
        std::vector<std::size_t> of_part(parts_.size());
        if (parts_.empty()) refuse(0, "acquire_all() got no locks", "Name one at least.");
        for (std::size_t i = 0; i < order_.size() && !error_; ++i)
            of_part[order_[i]] =
                look_at(order_[i], i > 0 ? std::optional(order_[i - 1]) : std::nullopt, places);
        if (!error_) tell_apart(places);
        if (!error_) set_ = LeaseSet(std::move(of_part));
    }

    /// False: it has ended, see result().
    bool goes_on() const noexcept { return !error_ && next_ < steps_.size(); }
    const std::shared_ptr<Lock>& lock() const noexcept { return part().lock; }
    AcquireOptions request() noexcept {
        AcquireOptions o;
        o.mode = part().mode;
        o.permits = part().permits;
        o.note = options_.note;
        if (options_.diagnostics != nullptr) o.diagnostics = &words_;
        o.wait = options_.wait == forever ? forever : left();
        return o;
    }
    void answered(error_code ec, Lease lease) {
        if (ec == errc::contended && options_.wait > milliseconds::zero())
            ec = make_error_code(errc::timed_out);
        if (!ec) set_.add(std::move(lease));
        // It may be the loss that has cancelled the wait.
        if (const error_code lost = set_.lost_reason(); lost && (!ec || ec == errc::cancelled))
            return fail(lost_part(), lost);
        if (ec) return fail(steps_[next_], ec);
        ++next_;
    }
    void cancelled() { fail(steps_[next_], make_error_code(errc::cancelled)); }
    std::stop_token lost() const { return set_.lost(); }

    error_code error() const noexcept { return error_; }
    LeaseSet take() { return std::move(set_); }
    /// Writes what the caller asked to know of the error. Once, while the caller still waits.
    void report() {
        if (options_.diagnostics != nullptr) append(words_, *options_.diagnostics);
        if (options_.failed != nullptr && failed_) *options_.failed = *failed_;
    }

private:
    const Part& part() const noexcept { return parts_[steps_[next_]]; }
    milliseconds left() const noexcept {
        const auto rest = std::chrono::ceil<milliseconds>(deadline_ - boot_clock::now());
        return std::max(rest, milliseconds::zero());
    }
    /// Adds a step for this part, unless the one before in the order is the same lock. Returns the
    /// number of its step.
    std::size_t look_at(std::size_t i, std::optional<std::size_t> before,
                        const std::vector<std::string>& places) {
        const Part& p = parts_[i];
        if (places[i].empty()) {
            refuse(i, "a lock does not say where it is, so no order can be kept",
                   "Override Lock::place in the decorator.");
            return 0;
        }
        const bool again = before && places[*before] == places[i];
        if (!again) steps_.push_back(i);
        if (again) {
            const Part& same = parts_[*before];
            if (p.mode != same.mode || p.permits != same.permits ||
                p.lock->kind() != same.lock->kind())
                refuse(i, "one lock is named twice, differently",
                       "Name it once, with the mode and the permits that all of the work needs.");
        }
        return steps_.size() - 1;
    }
    /// Refuses two parts that may be one lock: the call would wait for itself.
    void tell_apart(const std::vector<std::string>& places) {
        std::map<std::string_view, std::vector<std::size_t>> by_name;
        for (const std::size_t i : steps_) {
            auto& others = by_name[name_in(places[i])];
            for (const std::size_t other : others) {
                const std::string open = left_open(places[other], places[i]);
                if (open.empty()) continue;
                return refuse(std::max(i, other),
                              "two parts have this name, and may be one lock or two: their "
                              "configurations differ in " +
                                  open,
                              "Write both configurations alike, or name the lock once.");
            }
            others.push_back(i);
        }
    }
    void refuse(std::size_t i, std::string what, std::string remedy) {
        words_.add(i < parts_.size() ? std::string(parts_[i].lock->name()) : "", std::move(what),
                   std::move(remedy));
        fail(i, make_error_code(errc::bad_config));
    }
    std::size_t lost_part() const noexcept {
        for (std::size_t i = 0; i < next_; ++i)
            if (set_[steps_[i]].lost_reason()) return steps_[i];
        return steps_[next_];
    }
    void fail(std::size_t i, error_code ec) {
        error_ = ec;
        failed_ = i;
        set_ = LeaseSet();
    }

    const AcquireAllOptions options_;
    const boot_clock::time_point deadline_;
    const std::vector<Part> parts_;
    std::vector<std::size_t> order_;  // parts by place
    std::vector<std::size_t> steps_;  // the same without those that name a lock again
    std::size_t next_ = 0;
    error_code error_;
    // Ours, since the locks write there and do not notice when the caller ends with its loop.
    Diagnostics words_;
    std::optional<std::size_t> failed_;
    LeaseSet set_;
};

result<LeaseSet> acquire_all(const std::vector<Part>& parts, const AcquireAllOptions& options,
                             std::stop_token stop) {
    Gathering all(parts, options);
    while (all.goes_on()) {
        std::stop_source end;
        const auto request_stop = [&end] { end.request_stop(); };
        const std::stop_callback on_stop(stop, request_stop), on_loss(all.lost(), request_stop);
        auto lease = all.lock()->acquire(all.request(), end.get_token());
        all.answered(lease ? error_code() : lease.error(), lease ? std::move(*lease) : Lease());
    }
    all.report();
    if (all.error()) return all.error();
    return all.take();
}

namespace {

/// The asynchronous form. Any thread; the answer of one lock starts the next step.
class AllAcquisition final : public std::enable_shared_from_this<AllAcquisition>, private Orphan {
public:
    using Handler = asio::any_completion_handler<AcquireAllSignature>;

    AllAcquisition(const std::vector<Part>& parts, const AcquireAllOptions& options,
                   Handler handler)
        : note_(options.note),
          all_(parts, with_note(options)),
          callback_(std::move(handler), this) {}

    void step() {
        auto now = now_.access();
        if (!now) return;
        if (now->cancelled && all_.goes_on()) all_.cancelled();
        if (!all_.goes_on()) {
            now.end();
            on_loss_.reset();
            callback_.while_alive([&] { all_.report(); });
            const error_code ec = all_.error();
            return callback_.complete(ec, ec ? LeaseSet() : all_.take());
        }
        auto answered = [self = shared_from_this()](error_code ec, Lease lease) {
            self->answered(ec, std::move(lease));
        };
        const auto waiting = std::make_shared<AsyncAcquisition>(all_.lock(), std::move(answered));
        const AcquireOptions request = all_.request();
        const std::stop_token lost = all_.lost();
        now->waiting = waiting;
        now.end();
        on_loss_.emplace(lost, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->end_wait();
        });
        waiting->start(request);  // last: its answer brings the next step, on another thread
    }
    void cancel() {
        {
            const auto now = now_.access();
            if (!now) return;
            now->cancelled = true;
        }
        end_wait();
    }

private:
    AcquireAllOptions with_note(AcquireAllOptions o) const noexcept {
        o.note = note_;
        return o;
    }
    void answered(error_code ec, Lease lease) {
        {
            const auto now = now_.access();
            if (!now) return;
            all_.answered(ec, std::move(lease));
        }
        step();
    }
    void end_wait() {
        std::shared_ptr<AsyncAcquisition> waiting;
        {
            if (const auto now = now_.access()) waiting = now->waiting.lock();
        }
        if (waiting) waiting->cancel();
    }
    std::shared_ptr<void> orphaned() override { return to_be_cancelled(weak_from_this().lock()); }

    struct Now {
        bool cancelled = false;
        std::weak_ptr<AsyncAcquisition> waiting;  // which keeps this alive, and the lock keeps it
    };
    const std::string note_;
    ForkGuarded<Now> now_;
    Gathering all_;  // guarded by it, too
    std::optional<std::stop_callback<std::function<void()>>> on_loss_;
    SystemCallback<AcquireAllSignature> callback_;
};

}  // namespace

void start_acquire_all(const std::vector<Part>& parts, const AcquireAllOptions& options,
                       asio::any_completion_handler<AcquireAllSignature> handler) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    const auto all = std::make_shared<AllAcquisition>(parts, options, std::move(handler));
    if (slot.is_connected())
        slot.assign([weak = std::weak_ptr<AllAcquisition>(all)](asio::cancellation_type) {
            if (const auto alive = weak.lock()) alive->cancel();
        });
    all->step();
}

}  // namespace holdfast
