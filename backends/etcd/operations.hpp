// One verb for one lock: what to ask next, what an answer means, what silence means, and the
// verdict. No sockets, no coroutine, no thread: the backend runs many of them together, and a test
// answers in the server's place.
#pragma once
#include <memory>
#include <optional>

#include "change.hpp"
#include "entering.hpp"
#include "holdfast/spi/backend.hpp"
#include "queue_cache.hpp"

namespace holdfast::etcd {

/// The course of a request, beside its results.
struct RequestInfo {
    std::int64_t revision = 0;
    bool doubt = false;   ///< it may have been executed
    bool late = false;    ///< it may still be executed
    bool unsent = false;  ///< others of this client had the time, and were answered
    bool repeated = false;
    boot_clock::time_point ended{};
    std::string detail;
};

/// wants() names the step: first the lease of needs(), if any, then the request. After answered()
/// or missing() it may want another one.
class Operation {
public:
    /// Operations share a request where they want the same step.
    enum class Step : std::uint8_t {
        over,   ///< nothing more: the outcome is written
        enter,  ///< make a key
        clear,  ///< remove a marker without owners
        check,  ///< whether the key ahead is there
        list,   ///< the line: a plain range, which nothing shares
        adopt,  ///< attach a waiter's key to the lease of all waiters
        take,   ///< turn it into a holder's
        renew,
        leave,  ///< delete a key
        tell    ///< write an operator's word into a holder's key
    };
    enum class Needs : std::uint8_t { nothing, young, waiting };

    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    Step wants() const noexcept { return step_; }
    Needs needs() const noexcept { return needs_; }
    /// Whether it shares no request with others of its line.
    bool alone() const noexcept { return alone_; }
    /// Whether the answer to its request may be long.
    bool lists() const noexcept { return lists_; }

    virtual void leased(const Lease& l) {
        lease_ = l;
        needs_ = Needs::nothing;
    }
    const Lease& lease() const noexcept { return lease_; }
    virtual void request(Transaction) = 0;
    virtual void answered(const Result&, const RequestInfo&) = 0;
    /// There is no lease, or no answer to the request.
    virtual void missing(const error_code& why, const RequestInfo&) = 0;

    const OwnerStatePtr place;
    const milliseconds ttl;  ///< of the young lease
    const boot_clock::time_point deadline;

protected:
    Operation(OwnerStatePtr p, boot_clock::time_point d)
        : place(std::move(p)), ttl(), deadline(d) {}
    /// An attempt, or what is held.
    template <class Item>
    explicit Operation(const Item& i)
        : place(state_of(i.place)), ttl(i.ttl + i.lock_delay), deadline(i.deadline) {}
    void want(Step s, Needs n = Needs::nothing, bool alone = false) noexcept {
        step_ = s;
        needs_ = n;
        alone_ = alone;
        lists_ = false;
    }
    bool lists_ = false;

private:
    Step step_ = Step::over;
    Needs needs_ = Needs::nothing;
    bool alone_ = false;
    Lease lease_;
};

/// Deletes a key: an attempt withdraws what it has made, or may have made; a holder releases it.
class Leave final : public Operation {
public:
    Leave(spi::Attempt&, QueueCache&);
    Leave(spi::Held&, QueueCache&);
    void request(Transaction) override;
    void answered(const Result&, const RequestInfo&) override;
    void missing(const error_code&, const RequestInfo&) override;

private:
    void begin(bool alone);
    /// The key outlives what was believed of it by a lock_delay.
    bool is_late() const;

    spi::Attempt* const attempt_ = nullptr;  ///< or
    spi::Held* const held_ = nullptr;
    QueueCache& queues_;
};

class Acquire final : public Operation {
public:
    Acquire(spi::Attempt&, QueueCache&);
    void leased(const Lease&) override;
    void request(Transaction) override;
    void answered(const Result&, const RequestInfo&) override;
    void missing(const error_code&, const RequestInfo&) override;

private:
    using Verdict = decltype(spi::Attempt::outcome);
    void enter() noexcept;
    /// Others are known to wait, so it will not be granted in the transaction that makes its key.
    bool joins_waiters() const noexcept;
    void entered(const Result&, const RequestInfo&);
    void not_entered(const error_code&, const RequestInfo&);
    /// Its key is in line: looks what became of the line if that is due, and goes on.
    void stand(boot_clock::time_point now);
    void list();
    void listed(const Result&, std::int64_t revision);
    /// By what is known of the line: takes it, waits, or leaves.
    void settle();
    void changed(Change::Outcome);
    void grant(PreviousHolder);
    void wait();
    void leave();
    void left();
    /// Its key is gone, and the next attempt makes another.
    void start_over();
    void end(Verdict);

    spi::Attempt& attempt_;
    QueueCache& queues_;
    Entering how_;
    std::unique_ptr<QueueCache::Listing> listing_;
    std::int64_t marker_ = 0;   ///< the revision of one that is in the way
    bool cleared_ = false;      ///< a marker was removed already
    std::string ahead_;         ///< the key ahead, to be checked
    std::int64_t created_ = 0;  ///< its revision
    bool watched_ = false;      ///< the watch alone has said who is in line
    std::optional<Change> change_;
    std::optional<Leave> leave_;
    bool full_ = false;  ///< it leaves since the database is full
};

/// Also with fewer units.
class Renew final : public Operation {
public:
    explicit Renew(spi::Held&);
    void request(Transaction) override;
    void answered(const Result&, const RequestInfo&) override;
    void missing(const error_code&, const RequestInfo&) override;

private:
    spi::Held& held_;
    std::optional<Change> change_;
};

}  // namespace holdfast::etcd
