// The lock service of one process: the semantics that every backend has to match, in one mutex.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/spi/backend.hpp"

namespace holdfast::memory {

using time_point = boot_clock::time_point;

/// One name. The entry outlives its holders, so that tokens never go back.
struct Entry {
    struct Holding {
        std::string owner;  ///< empty: closed by nobody until `expires`
        spi::Units units;
        FencingToken token;
        time_point since, valid, expires;  ///< expires: valid and the lock delay, or min_hold
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
    std::vector<Holding> holders;  ///< in the order of their grants
    std::deque<Waiting> queue;
    FencingToken token;                          ///< the highest ever given
    PreviousHolder last = PreviousHolder::none;  ///< the last exclusive holder's end
};

/// All locks of one `memory:NAME`. Thread-safe.
class Store {
public:
    static std::shared_ptr<Store> named(const std::string& name);

    void attempt(spi::Attempt&, const std::string& key, spi::BackendEvents&);
    void withdraw(const spi::Attempt&, const std::string& key);
    void renew(spi::Held&, const std::string& key);
    void release(spi::Held&, const std::string& key);
    result<Inspection> inspect(const std::string& key);
    std::vector<std::string> list(const std::string& prefix, std::size_t limit);
    result<std::vector<Broken>> break_lock(const std::string& key, const BreakOptions&);
    result<std::vector<Holder>> request_release(const std::string& key, const HolderFilter&);
    /// Forgets the waiters of a client that closes.
    void forget(const spi::BackendEvents&);

private:
    std::mutex mutex_;
    std::map<std::string, Entry> entries_;
};

}  // namespace holdfast::memory
