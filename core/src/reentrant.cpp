// One owner of a Reentrant: the handles of its grant, or its acquisitions under way.
#include "holdfast/reentrant.hpp"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <optional>
#include <vector>

#include "async_acquisition.hpp"
#include "backend_lock.hpp"
#include "complete_on_system.hpp"
#include "holdfast/detail/fork_guarded.hpp"
#include "holdfast/spi/forwarding_lease.hpp"
#include "std_adapter.hpp"

namespace holdfast {
namespace {

class OneOwner;

/// A caller's answer; nullopt: its turn to ask the lock.
using Answer = std::optional<result<Lease>>;

/// A caller that has no answer yet.
class Caller {
public:
    explicit Caller(const AcquireOptions& o)
        : options_(o),
          note_(o.note),
          begun_(boot_clock::now()),
          deadline_(after(begun_, std::max(o.wait, milliseconds::zero()))) {}
    virtual ~Caller() = default;
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    boot_clock::time_point deadline() const noexcept { return deadline_; }
    /// Else it makes one attempt, whose bound is the request time-out.
    bool waits() const noexcept { return options_.wait > milliseconds::zero(); }
    /// Whether the other one's acquisition, begun anew, ends within this one's bound.
    bool may_join(const Caller& other) const noexcept {
        return other.deadline_ <= (other.waits() ? deadline_ : begun_);
    }
    const AcquireOptions& options() const noexcept { return options_; }
    /// Its options, with the time that is left.
    AcquireOptions request() const {
        AcquireOptions o = options_;
        o.note = note_;
        if (o.wait == forever) return o;
        o.wait = std::max(std::chrono::ceil<milliseconds>(deadline_ - boot_clock::now()),
                          milliseconds::zero());
        return o;
    }
    virtual void tell(Answer) = 0;
    /// Prepares its turn: makes what ender() ends. Both are called under the owner's mutex.
    virtual void prepare() = 0;
    /// Ends its wait at the lock; to be called under no mutex.
    virtual std::function<void()> ender() = 0;
    /// It can be told while its acquisition goes on.
    virtual bool detaches() const noexcept = 0;

    bool cancelled = false;  ///< by its caller; guarded as the owner's state is

private:
    const AcquireOptions options_;
    const std::string note_;
    const boot_clock::time_point begun_, deadline_;
};

/// One handle of the grant. The owner can share it until it is released.
class ReentrantHandle final : public spi::ForwardingLease {
public:
    ReentrantHandle(Lease inner, std::shared_ptr<OneOwner> owner)
        : ForwardingLease(std::move(inner)), owner_(std::move(owner)) {}
    const Lease& lease() const noexcept { return inner(); }
    ReleaseResult release(Outcome o) noexcept override {
        let_go();
        return ForwardingLease::release(o);
    }
    void async_release(Outcome o,
                       asio::any_completion_handler<Lease::ReleaseSignature> h) override {
        let_go();
        ForwardingLease::async_release(o, std::move(h));
    }
    void drop(Outcome o) noexcept override {
        let_go();
        ForwardingLease::drop(o);
    }

private:
    void let_go() noexcept;
    const std::shared_ptr<OneOwner> owner_;
};

class OneOwner final : public ReentrantOwner, public std::enable_shared_from_this<OneOwner> {
public:
    explicit OneOwner(std::shared_ptr<Lock> lock) : lock_(std::move(lock)) {}

    result<Lease> acquire(const AcquireOptions&, std::stop_token) override;
    void start(const AcquireOptions&, Handler) override;

    const std::shared_ptr<Lock>& lock() const noexcept { return lock_; }
    /// False in a forked child.
    bool enter(const std::shared_ptr<Caller>& c) {
        Telling told;
        {
            const auto now = now_.access();
            if (!now) return false;
            place(*now, c, told);
        }
        tell(told);
        return true;
    }
    void cancel(const std::shared_ptr<Caller>&);
    /// The lock has answered the caller whose turn it was.
    void answered(const std::shared_ptr<Caller>&, error_code, Lease);
    void let_go(ReentrantHandle* h) noexcept {
        if (const auto now = now_.access()) std::erase(now->open, h);
    }

private:
    /// An acquisition under way, and the callers that share its answer.
    struct UnderWay {
        std::shared_ptr<Caller> caller;
        std::list<std::shared_ptr<Caller>> joined;
        bool ended = false;  ///< by another acquisition's grant
        bool left = false;   ///< its caller is told: it goes on for those that joined
    };
    using Telling = std::vector<std::pair<std::shared_ptr<Caller>, Answer>>;

    static void tell(Telling& all) {
        for (auto& [caller, answer] : all)
            caller->tell(std::move(answer));
    }
    /// Whether the answer only means that this caller's own time is over.
    static bool own_end(error_code ec) noexcept {
        return ec == errc::contended || ec == errc::timed_out || ec == errc::cancelled;
    }
    /// What it is told whose time is over.
    static error_code end_of(const Caller& c) noexcept {
        return make_error_code(c.waits() ? errc::timed_out : errc::contended);
    }
    /// The lock refuses it without sending anything, and gives the reason.
    bool refused_by_lock(const AcquireOptions& o) const noexcept {
        return o.permits != 1 || (o.mode == Mode::shared && lock_->kind() != Kind::shared_mutex);
    }

    struct Now {
        std::vector<ReentrantHandle*> open;  // of the one grant, not released
        std::list<UnderWay> under_way;
    };
    void place(Now&, const std::shared_ptr<Caller>&, Telling&);
    /// What they waited for has ended.
    void place_again(Now&, std::list<std::shared_ptr<Caller>>, Telling&);
    Lease handle(Now& now, Lease inner) {
        auto body = std::make_shared<ReentrantHandle>(std::move(inner), shared_from_this());
        now.open.push_back(body.get());
        return Lease(std::move(body));
    }
    result<Lease> one_more(Now&, const Caller&);

    const std::shared_ptr<Lock> lock_;
    ForkGuarded<Now> now_;
};

void ReentrantHandle::let_go() noexcept {
    owner_->let_go(this);
}

result<Lease> OneOwner::one_more(Now& now, const Caller& c) {
    const Lease& any = now.open.front()->lease();
    if (any.state() == LeaseState::lost)
        return any.lost_reason() ? any.lost_reason() : make_error_code(errc::lost);
    auto more = any.share();
    if (!more) return more.error();
    // From here on nobody downgrades it.
    if (c.options().mode == Mode::exclusive && any.mode() == Mode::shared) {
        more->release();
        if (c.options().diagnostics != nullptr)
            c.options().diagnostics->add(std::string(lock_->name()),
                                         "this owner has it shared and asks for it exclusively",
                                         "Release the shared one first, or begin exclusively.");
        return make_error_code(errc::would_deadlock);
    }
    return handle(now, std::move(*more));
}

void OneOwner::place(Now& now, const std::shared_ptr<Caller>& c, Telling& told) {
    if (!now.open.empty()) return void(told.emplace_back(c, one_more(now, *c)));
    // One that ends no later needs no clock: a caller that joins it is asked again then.
    for (UnderWay& u : now.under_way)
        if (!u.caller->cancelled && c->may_join(*u.caller)) return u.joined.push_back(c);
    c->prepare();
    now.under_way.push_back({c, {}});
    told.emplace_back(c, std::nullopt);
}

void OneOwner::place_again(Now& now, std::list<std::shared_ptr<Caller>> joined, Telling& told) {
    joined.sort([](const auto& a, const auto& b) { return a->deadline() < b->deadline(); });
    for (const auto& j : joined) {
        // The lock was asked for it: one more request could take a request time-out more.
        if (now.open.empty() && j->deadline() <= boot_clock::now())
            told.emplace_back(j, end_of(*j));
        else
            place(now, j, told);
    }
}

void OneOwner::cancel(const std::shared_ptr<Caller>& c) {
    std::function<void()> end;
    Telling told;
    {
        const auto now = now_.access();
        if (!now || std::exchange(c->cancelled, true)) return;
        std::list<std::shared_ptr<Caller>> joined;
        for (UnderWay& u : now->under_way) {
            if (u.caller == c) {
                // Others may have waited for its one attempt for as long as one may take. Where it
                // waits, they do so by themselves: until it has left, their time may be over.
                if (c->waits() || u.joined.empty()) {
                    end = c->ender();
                    joined.swap(u.joined);
                } else if (u.left = c->detaches(); u.left) {
                    end = [c] { c->tell(Answer(make_error_code(errc::cancelled))); };
                }
                break;
            }
            if (u.joined.remove(c) == 0) continue;
            end = [c,
                   last = u.caller->cancelled && u.joined.empty() ? u.caller->ender() : nullptr] {
                if (last) last();
                c->tell(Answer(make_error_code(errc::cancelled)));
            };
            break;
        }
        place_again(*now, std::move(joined), told);
    }
    if (end) end();
    tell(told);
}

void OneOwner::answered(const std::shared_ptr<Caller>& c, error_code ec, Lease lease) {
    Telling told;
    std::vector<std::function<void()>> ends;
    {
        const auto now = now_.access();
        if (!now) return;
        const auto mine = std::find_if(now->under_way.begin(), now->under_way.end(),
                                       [&](const UnderWay& u) { return u.caller == c; });
        auto joined = std::move(mine->joined);
        const bool ended = mine->ended, left = mine->left;
        now->under_way.erase(mine);
        if (!ec && now->open.empty()) {
            lease = handle(*now, std::move(lease));
            if (!left) told.emplace_back(c, std::move(lease));
        } else if (!c->cancelled && (ended || !now->open.empty())) {
            joined.push_front(c);  // another one was granted first
        } else {
            if (!ec) ec = make_error_code(errc::cancelled);
            const error_code own = ec == errc::contended ? end_of(*c) : ec;
            if (!left) told.emplace_back(c, c->cancelled ? make_error_code(errc::cancelled) : own);
        }
        if (!ec || own_end(ec) || !now->open.empty()) {
            place_again(*now, std::move(joined), told);
        } else {
            for (const auto& j : joined)
                told.emplace_back(j, ec);
        }
        if (!now->open.empty())
            for (UnderWay& u : now->under_way)
                if (!std::exchange(u.ended, true)) ends.push_back(u.caller->ender());
    }
    lease = {};  // a second grant goes back, or the handle of a caller that has left
    for (const auto& end : ends)
        end();
    tell(told);
}

// --- blocking
// -----------------------------------------------------------------------------------

class BlockingCaller final : public Caller {
public:
    using Caller::Caller;
    void tell(Answer a) override {
        {
            const std::lock_guard hold(mutex_);
            answer_.emplace(std::move(a));
        }
        told_.notify_one();
    }
    void prepare() override { end_ = std::stop_source(); }
    std::function<void()> ender() override {
        return [end = end_]() mutable { end.request_stop(); };
    }
    bool detaches() const noexcept override { return false; }
    std::stop_token end() const noexcept { return end_.get_token(); }
    Answer take() {
        std::unique_lock hold(mutex_);
        told_.wait(hold, [&] { return answer_.has_value(); });
        Answer a = std::move(*answer_);
        answer_.reset();
        return a;
    }

private:
    std::stop_source end_;
    std::mutex mutex_;
    std::condition_variable told_;
    std::optional<Answer> answer_;
};

result<Lease> OneOwner::acquire(const AcquireOptions& options, std::stop_token stop) {
    if (refused_by_lock(options)) return lock_->acquire(options, std::move(stop));
    const auto caller = std::make_shared<BlockingCaller>(options);
    if (!enter(caller)) return make_error_code(errc::forked);
    const std::stop_callback on_stop(stop, [&] { cancel(caller); });
    for (;;) {
        if (Answer answer = caller->take()) return std::move(*answer);
        result<Lease> lease = make_error_code(errc::unavailable);
        try {
            lease = lock_->acquire(caller->request(), caller->end());
        } catch (...) {
            answered(caller, lease.error(), Lease());
            throw;
        }
        answered(caller, lease ? error_code() : lease.error(), lease ? std::move(*lease) : Lease());
    }
}

// --- without blocking
// ---------------------------------------------------------------------------

class AsyncCaller final : public Caller,
                          public std::enable_shared_from_this<AsyncCaller>,
                          private Orphan {
public:
    AsyncCaller(std::shared_ptr<OneOwner> owner, const AcquireOptions& o,
                ReentrantOwner::Handler handler)
        : Caller(with_words(o, &words_)),
          owner_(std::move(owner)),
          diagnostics_(o.diagnostics),
          callback_(std::move(handler), this) {}
    void tell(Answer a) override {
        if (!a) return std::exchange(made_, nullptr)->start(request());
        if (diagnostics_ != nullptr) callback_.while_alive([&] { append(words_, *diagnostics_); });
        callback_.complete(*a ? error_code() : a->error(), *a ? std::move(**a) : Lease());
    }
    void prepare() override {
        made_ = std::make_shared<AsyncAcquisition>(
            owner_->lock(), [self = shared_from_this()](error_code ec, Lease lease) {
                self->owner_->answered(self, ec, std::move(lease));
            });
        waiting_ = made_;
    }
    std::function<void()> ender() override {
        return [weak = waiting_] {
            if (const auto waiting = weak.lock()) waiting->cancel();
        };
    }
    bool detaches() const noexcept override { return true; }
    void cancel() { owner_->cancel(shared_from_this()); }

private:
    std::shared_ptr<void> orphaned() override { return to_be_cancelled(weak_from_this().lock()); }
    static AcquireOptions with_words(AcquireOptions o, Diagnostics* words) noexcept {
        if (o.diagnostics != nullptr) o.diagnostics = words;
        return o;
    }

    const std::shared_ptr<OneOwner> owner_;
    // The lock writes to ours: it does not notice when the caller ends with its loop.
    Diagnostics words_;
    Diagnostics* const diagnostics_;
    std::shared_ptr<AsyncAcquisition> made_;  // until it is started; then the lock keeps it
    std::weak_ptr<AsyncAcquisition> waiting_;
    SystemCallback<Lock::Signature> callback_;
};

void OneOwner::start(const AcquireOptions& options, Handler handler) {
    if (refused_by_lock(options)) return lock_->async_acquire(options, std::move(handler));
    auto slot = asio::get_associated_cancellation_slot(handler);
    const auto caller =
        std::make_shared<AsyncCaller>(shared_from_this(), options, std::move(handler));
    if (slot.is_connected())
        slot.assign([weak = std::weak_ptr<AsyncCaller>(caller)](asio::cancellation_type) {
            if (const auto alive = weak.lock()) alive->cancel();
        });
    (void)enter(caller);
}

}  // namespace

ReentrantOwner::ReentrantOwner() = default;
ReentrantOwner::~ReentrantOwner() = default;

std::shared_ptr<ReentrantOwner> ReentrantOwner::make(std::shared_ptr<Lock> lock) {
    return std::make_shared<OneOwner>(std::move(lock));
}

std::unique_ptr<Lock> ReentrantOwner::make_lock(const Client& client, std::string_view name,
                                                const LockOptions& options) {
    return made_by(client, name, options, "holdfast::Reentrant");
}

std::shared_ptr<Lock> ReentrantOwner::checked(std::unique_ptr<Lock> lock) {
    if (lock->kind() == Kind::semaphore)
        throw boost::system::system_error(make_error_code(errc::not_supported),
                                          "holdfast::Reentrant");
    return lock;
}

}  // namespace holdfast
