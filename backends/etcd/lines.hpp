// What this client knows of the lines in which its waiters stand: a list, then every change by one
// watch of all its lines. Keys stand in the order of their creation, so a key that was once first
// stays first until it is deleted; that is all that is concluded from here, and a transaction that
// finds the key there makes it a grant.
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

namespace holdfast::etcd {

/// One owner's key at the server.
struct Place {
    enum class State : std::uint8_t { asked, queued, held, gone };
    std::string owner, line, key, value;
    std::int64_t created = 0;   ///< the fencing token; 0: not known to be there
    std::int64_t modified = 0;  ///< a late request that would change it compares this
    std::int64_t lease = 0;     ///< to which it is attached, as far as is known
    State state = State::asked;
    boot_clock::time_point checked{};  ///< its line was last looked after
    bool doubt = false;                ///< a request that makes the key was not answered
};
using PlacePtr = std::shared_ptr<Place>;

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
    /// From now on its owner is woken when it may be first, when its key is gone, and, as a holder,
    /// when its key was changed.
    void join(const PlacePtr&);
    void leave(const Place&) noexcept;
    bool first(const Place&) const noexcept;
    /// Before all others of this client's in its line: it looks after what the watch may have
    /// missed.
    bool foremost(const Place&) const noexcept;
    /// The key ahead of it; null: not known.
    const std::string* ahead(const Place&, std::int64_t* created) const noexcept;
    /// The watch has not told of something that has happened: it goes on by a new connection.
    void resume() noexcept;
    /// The watch is there, as far as is known: without it changes are found out by asking.
    bool following() const noexcept { return following_; }
    bool empty() const noexcept { return lines_.empty(); }
    std::vector<PlacePtr> waiting() const;

    /// Ends the watch when nobody has waited for a while.
    void tidy() noexcept;
    void stop() noexcept;

private:
    struct Line {
        std::map<std::int64_t, std::string> keys;  ///< by revision of creation
        std::unordered_map<std::string, std::int64_t> created;
        std::map<std::int64_t, PlacePtr> own;
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
    void lost(Place&);
    void look(Line&);
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
