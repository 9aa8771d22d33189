// The lock service of one process: the semantics that every backend has to match, in one mutex.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "holdfast/spi/backend.hpp"

namespace holdfast::memory {

/// One name. The entry outlives its holders, so that tokens never go back.
struct Entry {
    struct Waiting {
        std::string owner;
        spi::BackendEvents* events;
        boot_clock::time_point alive_until;  ///< a waiter that does not look in time is skipped
    };
    std::string owner;  ///< empty: free
    FencingToken token;
    boot_clock::time_point expires, since;
    PreviousHolder last = PreviousHolder::none;     ///< for the next holder
    PreviousHolder told = PreviousHolder::unknown;  ///< for this holder
    bool revoked = false;
    std::deque<Waiting> queue;

    bool free(boot_clock::time_point now) const noexcept { return owner.empty() || expires <= now; }
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
    /// Forgets the waiters of a client that closes.
    void forget(const spi::BackendEvents&);

private:
    void drop_dead(Entry&, boot_clock::time_point now);
    void wake_first(Entry&, boot_clock::time_point now);
    static void leave_line(Entry&, std::string_view owner);

    std::mutex mutex_;
    std::map<std::string, Entry> entries_;
};

}  // namespace holdfast::memory
