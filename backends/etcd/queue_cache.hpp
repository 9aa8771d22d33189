// What this client knows of the lines of its waiters: a list, then every change through one watch,
// of its line or, where there are several, of all below the prefix. A key that once fitted beside
// all before it does so until it is gone (see unit_queue.hpp). This is all that is concluded from
// here; a transaction that finds the key there turns it into a grant.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "members.hpp"
#include "messages.hpp"
#include "owner_state.hpp"
#include "unit_queue.hpp"

namespace holdfast::etcd {

/// Engine thread only.
class QueueCache : public std::enable_shared_from_this<QueueCache> {
public:
    QueueCache(std::shared_ptr<Shared>, std::shared_ptr<Members>);
    ~QueueCache();

    /// Covers a request that lists a line, whatever its outcome. Make it before the request is
    /// sent.
    class Listing {
    public:
        Listing(QueueCache&, const std::string& line);
        ~Listing();
        Listing(const Listing&) = delete;
        Listing& operator=(const Listing&) = delete;
        /// Takes all keys of the line, as of that revision.
        void done(const std::vector<KeyValue>&, std::int64_t revision);

    private:
        std::shared_ptr<QueueCache> queues_;
        std::string line_;
    };

    /// Whether the line is known, so that it need not be listed.
    bool known(const std::string& line) const noexcept;
    /// Whether somebody in it is known to wait.
    bool crowded(const std::string& line) const noexcept;
    /// From now on its owner is notified when it may be let in, when its key is gone, and, as a
    /// holder, when its key was changed.
    void join(const OwnerStatePtr&);
    /// A request that makes its key was not answered. drop_abandoned() looks after it, too, if that
    /// is on the waiters' lease.
    void may_enter(const OwnerStatePtr&);
    /// The waiter has become a holder.
    void hold(const OwnerState&);
    void leave(const OwnerState&) noexcept;
    /// Whether it may be let in.
    bool fits(const OwnerState&) const noexcept;
    /// Whether it is the first waiter of this client in its line, with no exclusive holder of this
    /// client before it whose lease is valid: then it checks for what the watch may have missed.
    bool foremost(const OwnerState&) const noexcept;
    /// The key ahead of it; null: unknown.
    const std::string* ahead(const OwnerState&, std::int64_t* created) const noexcept;
    /// The watch has missed a change: reconnects it.
    void resume() noexcept;
    /// The store has begun anew, and is at this revision: all is listed and watched anew. What was
    /// created later is not there.
    void begin_anew(std::int64_t revision);
    /// Whether the watch works, as far as is known. Without it changes are found by requests.
    bool following() const noexcept { return following_; }
    /// Whether the lease of this client's waiters is needed.
    bool has_waiters() const noexcept;
    /// From now on BackendEvents::changed() tells of the line's holders, by this name; an empty one
    /// ends that.
    void observe(const std::string& line, std::string_view name);
    /// An answer has what is in that line at that revision: an observed line is watched from there.
    void listed(const std::string& line, std::int64_t revision);
    std::vector<OwnerStatePtr> waiting() const;
    /// Drops places that only this object still knows: core requested their deletion and gave up
    /// without an answer. True: a key of one of them may be in line, or come there, on the waiters'
    /// lease, which must not be kept alive any longer.
    bool drop_abandoned() noexcept;

    /// Ends the watch when there was no waiter for a while.
    void tidy() noexcept;
    void stop() noexcept;

private:
    struct Queue {
        UnitQueue row;
        std::map<std::int64_t, OwnerStatePtr> waiting,
            holding;           ///< own places, by revision of creation
        std::string observed;  ///< by this name; empty: by nobody
        bool unused() const noexcept {
            return waiting.empty() && holding.empty() && listings == 0 && observed.empty();
        }
        bool known = false;
        unsigned listings = 0;
        std::int64_t listed_at = 0;
        std::int64_t told_of = 0;       ///< the revision of the last event that was applied since
        std::vector<rpc::Event> early;  ///< events during a listing
    };
    /// Watches that line, too.
    void watch_from(const std::string& line, std::int64_t revision);
    void begin_watch();
    awaitable<void> watch();
    /// It has ended by an exception, for want of memory: what is listed begins another one.
    void watch_anew();
    /// A message of the watch. False: it must begin again.
    bool take(std::string_view bytes);
    void event(const rpc::Event&);
    void apply(Queue&, const rpc::Event&);
    /// Tells the observers of a line that its holders may be others.
    void tell(const Queue&);
    void wake(const OwnerState&) noexcept;
    void lost(OwnerState&);
    /// If the holder belongs to this client, makes it ask what became of its key.
    void risk(const Queue&, std::int64_t created);
    /// Notifies those that fit, among those created after this revision.
    void look(Queue&, std::int64_t beyond);
    /// Lists everything anew.
    void forget();
    void drop_if_empty(const std::string& line) noexcept;

    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::unordered_map<std::string, Queue> queues_;
    std::vector<OwnerStatePtr> may_enter_;
    std::shared_ptr<Members::Watcher> watcher_;
    rpc::WatchResponse message_;  ///< keeps its memory for the next
    std::string watched_;         ///< the only line that is watched; empty: all
    std::int64_t next_ = 0;       ///< revision to continue the watch from; 0: none
    bool watching_ = false, stopped_ = false, following_ = false;
    bool resumed_ = false;  ///< the watch was ended to be continued
    boot_clock::time_point needed_{};
    spi::net::Gate gate_;
};

}  // namespace holdfast::etcd
