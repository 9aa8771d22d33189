// The lock service of one process, under one mutex: a NameState for each name.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "holdfast/spi/name_state.hpp"

namespace holdfast::memory {

/// One name. The entry outlives its holders, so that the next one is told how the last one ended.
struct Entry {
    spi::NameState state;
    /// Of a holder or waiter.
    struct Client {
        std::string owner;
        spi::BackendEvents* events;
    };
    std::vector<Client> clients;
    std::string record;             ///< of the last break
    spi::NameState::Time used = 0;  ///< when it was asked for last

    Client* client(std::string_view owner) noexcept {
        const auto at = std::find_if(clients.begin(), clients.end(),
                                     [&](const Client& c) { return c.owner == owner; });
        return at == clients.end() ? nullptr : &*at;
    }
    void leave(std::string_view owner) {
        std::erase_if(clients, [&](const Client& c) { return c.owner == owner; });
    }
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
    spi::Survey survey(const std::string& key);
    std::vector<std::string> list(const std::string& prefix, std::size_t limit);
    spi::Answer<spi::Survey> tell(const std::string& key, const HolderFilter&, spi::Tell);
    std::string note(const std::string& key, std::optional<std::string> text);
    /// A client that watches the holders of a key, by the name that it uses.
    struct Watcher {
        spi::BackendEvents* events;
        std::string name;
    };
    void watch(const std::string& key, const Watcher&, bool on);
    /// Forgets the waiters and watches of a client that closes. Afterwards nothing calls these
    /// events.
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
        /// Its waiters that would be granted now are to try again.
        void wake(Entry&);
        /// The release of its holder with that owner was requested.
        void ask(Entry&, std::string_view owner);
        /// A holder of that key has come or gone.
        void change(const std::string& key);

    private:
        using Tell = void (spi::BackendEvents::*)(std::string_view);
        void add(Entry&, std::string_view owner, Tell);

        struct News {
            spi::BackendEvents* events;
            std::string text;  ///< an owner, or the name of which `changed` tells
            Tell tell;
        };
        Store& store_;
        std::unique_lock<std::mutex> hold_;
        std::vector<News> news_;
    };
    /// Null: nobody has asked for it yet.
    Entry* find(const std::string& key);
    Entry& entry(const std::string& key, spi::NameState::Time now);
    void sweep(spi::NameState::Time now);

    const milliseconds keep_;
    mutable std::mutex mutex_;
    std::map<std::string, Entry> entries_;
    std::multimap<std::string, Watcher> watchers_;  ///< by key
    std::string swept_;                             ///< the last name that sweep() looked at
    unsigned until_sweep_ = 64;
    std::int64_t forgotten_ = 0;  ///< the highest token of a forgotten name
    spi::NameState::Time last_ticket_ = 0;
    std::multiset<const spi::BackendEvents*>
        telling_;  ///< clients that a call is telling after its end
    std::condition_variable told_;
};

}  // namespace holdfast::memory
