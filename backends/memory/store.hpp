// The lock service of one process, under one mutex. Every other backend has to match its semantics.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace holdfast::memory {

using time_point = boot_clock::time_point;

/// One name. The entry outlives its holders, so that the next one is told how the last one ended.
struct Entry {
    struct Holding {
        std::string owner;  ///< empty: no holder, closed until `expires`
        spi::Units units;
        FencingToken token;
        time_point since, valid, expires;  ///< expires: with lock_delay and min_hold
        PreviousHolder told = PreviousHolder::unknown;
        spi::BackendEvents* events = nullptr;
        bool revoked = false, asked = false;
    };
    struct Waiting {
        std::string owner;
        spi::Units units;
        spi::BackendEvents* events;
        time_point alive_until;  ///< a waiter that does not look in time is skipped
    };
    /// Was broken with `now`: it hears why it is lost until its lease would have ended.
    struct Gone {
        std::string owner;
        time_point until;
    };
    std::vector<Holding> holders;  ///< in the order of their grants
    std::vector<Gone> gone;
    std::deque<Waiting> queue;
    FencingToken token;                          ///< the highest granted
    PreviousHolder last = PreviousHolder::none;  ///< how the last exclusive holder ended
    std::string record;                          ///< of the last break
    time_point used;                             ///< when it was asked for last
};

/// All locks of one `memory:NAME`. Thread-safe. Names that were released and that nobody has asked
/// for since `keep` are forgotten; their tokens are not given again.
class Store {
public:
    explicit Store(milliseconds keep = std::chrono::minutes(1)) : keep_(keep) {}
    static std::shared_ptr<Store> named(const std::string& name);

    void attempt(spi::Attempt&, const std::string& key, spi::BackendEvents&);
    void withdraw(const spi::Attempt&, const std::string& key);
    void renew(spi::Held&, const std::string& key);
    void release(spi::Held&, const std::string& key);
    result<Inspection> inspect(const std::string& key);
    std::vector<std::string> list(const std::string& prefix, std::size_t limit);
    result<std::vector<Broken>> break_lock(const std::string& key, const BreakOptions&);
    void record_break(const std::string& key, std::string text);
    std::string recorded_break(const std::string& key);
    result<std::vector<Holder>> request_release(const std::string& key, const HolderFilter&);
    /// Forgets the waiters of a client that closes. Afterwards nothing calls these events.
    void forget(const spi::BackendEvents&);
    std::size_t size() const;

private:
    /// One call's turn under the mutex. At its end, clients hear what it brought, without the
    /// mutex.
    class Turn {
    public:
        explicit Turn(Store& store) : store_(store), hold_(store.mutex_) {}
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        void wake(spi::BackendEvents& events, const std::string& owner) {
            news_.push_back({&events, owner, false});
        }
        void ask(spi::BackendEvents& events, const std::string& owner) {
            news_.push_back({&events, owner, true});
        }

    private:
        struct News {
            spi::BackendEvents* events;
            std::string owner;
            bool asked;  ///< else it may try again
        };
        Store& store_;
        std::unique_lock<std::mutex> hold_;
        std::vector<News> news_;
    };
    static void wake_head(Entry&, time_point now, Turn&);
    Entry& entry(const std::string& key, time_point now);
    void sweep(time_point now);

    const milliseconds keep_;
    mutable std::mutex mutex_;
    std::map<std::string, Entry> entries_;
    std::string swept_;  ///< the last name that sweep() looked at
    unsigned until_sweep_ = 64;
    FencingToken forgotten_;                            ///< the highest of a forgotten name
    std::multiset<const spi::BackendEvents*> telling_;  ///< whom a call that has ended is telling
    std::condition_variable told_;
};

}  // namespace holdfast::memory
