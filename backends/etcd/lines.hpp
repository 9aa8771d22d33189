// What this client knows of the lines in which its waiters stand: a list, then every change by one
// watch of all its lines. A key that once fitted beside all before it does so until it is gone (see
// row.hpp); that is all that is concluded from here, and a transaction that finds the key there
// makes it a grant.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "leases.hpp"
#include "members.hpp"
#include "messages.hpp"
#include "place.hpp"
#include "row.hpp"

namespace holdfast::etcd {

/// Engine thread only.
class Lines : public std::enable_shared_from_this<Lines> {
public:
    Lines(std::shared_ptr<Shared>, std::shared_ptr<Members>);
    ~Lines();

    /// Before a request that lists a line is sent, and whatever comes of it.
    class Listing {
    public:
        Listing(Lines&, const std::string& line);
        ~Listing();
        Listing(const Listing&) = delete;
        Listing& operator=(const Listing&) = delete;
        /// All keys of the line, as they were at that revision.
        void done(const std::vector<KeyValue>&, std::int64_t revision);

    private:
        std::shared_ptr<Lines> lines_;
        std::string line_;
    };

    /// The line is known: who stands in it need not be listed.
    bool known(const std::string& line) const noexcept;
    /// From now on its owner is woken when it may be let in, when its key is gone, and, as a
    /// holder, when its key was changed.
    void join(const PlacePtr&);
    /// It waits no longer.
    void hold(const Place&);
    void leave(const Place&) noexcept;
    /// It may be let in.
    bool fits(const Place&) const noexcept;
    /// The first of this client's that wait in its line, behind nobody of this client's who holds
    /// it alone: it looks after what the watch may have missed.
    bool foremost(const Place&) const noexcept;
    /// The key ahead of it; null: not known.
    const std::string* ahead(const Place&, std::int64_t* created) const noexcept;
    /// The watch has not told of something that has happened: it goes on by a new connection.
    void resume() noexcept;
    /// The watch is there, as far as is known: without it changes are found out by asking.
    bool following() const noexcept { return following_; }
    bool empty() const noexcept { return lines_.empty(); }
    std::vector<PlacePtr> waiting() const;
    /// Drops what only this knows of any more: core has asked to delete its key, had no answer for
    /// too long, and gave up. True: one of them waited, so its key may still be in line.
    bool drop_abandoned() noexcept;

    /// Ends the watch when nobody has waited for a while.
    void tidy() noexcept;
    void stop() noexcept;

private:
    struct Line {
        Row row;
        std::map<std::int64_t, PlacePtr> waiting, holding;  ///< own ones, by revision of creation
        bool unused() const noexcept { return waiting.empty() && holding.empty() && listings == 0; }
        bool known = false;
        unsigned listings = 0;
        std::int64_t listed_at = 0;
        std::vector<boost::json::object> early;  ///< events while it is listed
    };
    void watch_from(std::int64_t revision);
    awaitable<void> watch();
    void take(std::string_view bytes);
    void message(const boost::json::object&);
    void event(const boost::json::object&);
    void apply(Line&, const boost::json::object& event);
    void wake(const Place&) noexcept;
    void lost(Place&);
    /// Its holder, if it is one of this client's, asks what has become of its key.
    void risk(const Line&, std::int64_t created);
    /// Wakes those that fit, of those created after a revision.
    void look(Line&, std::int64_t beyond);
    void forget();
    void drop_if_empty(const std::string& line) noexcept;

    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::unordered_map<std::string, Line> lines_;
    std::shared_ptr<Members::Stream> stream_;
    std::string partial_;
    std::int64_t next_ = 0;  ///< revision from which the watch goes on; 0: there is none
    bool watching_ = false, canceled_ = false, stopped_ = false, following_ = false;
    boot_clock::time_point needed_{};
    spi::net::Gate gate_;
};

}  // namespace holdfast::etcd
