// The lock service of one process, under one mutex. Every other backend has to match its semantics.
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

/// One name. The entry outlives its holders, so that tokens never decrease.
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
    std::vector<Holding> holders;  ///< in the order of their grants
    std::deque<Waiting> queue;
    FencingToken token;                          ///< the highest granted
    PreviousHolder last = PreviousHolder::none;  ///< how the last exclusive holder ended
    std::string record;                          ///< of the last break
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
    void record_break(const std::string& key, std::string text);
    std::string recorded_break(const std::string& key);
    result<std::vector<Holder>> request_release(const std::string& key, const HolderFilter&);
    /// Forgets the waiters of a client that closes.
    void forget(const spi::BackendEvents&);

private:
    std::mutex mutex_;
    std::map<std::string, Entry> entries_;
};

}  // namespace holdfast::memory
