// What the members of an etcd cluster have in common: keys, leases and revisions, and the answers
// of the v3 gateway to the requests that the backend sends (https://etcd.io/docs/v3.4/rfc/v3api/).
// No network and no clock: whoever has it says when a lease ends. Held against etcd itself by
// fidelity.
#pragma once
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

/// What a member answers instead.
struct EtcdError : std::runtime_error {
    EtcdError(int c, const char* why) : std::runtime_error(why), code(c) {}
    int code;  ///< of gRPC
};

class EtcdStore {
public:
    struct Key {
        std::string value;
        std::int64_t created = 0, modified = 0, version = 0, lease = 0;
    };
    struct Lease {
        std::int64_t seconds = 0;
        std::set<std::string, std::less<>> keys;
    };
    struct Event {
        std::int64_t revision;
        std::string key;
        Key now;  ///< version 0: it was deleted
    };

    /// Errors: EtcdError, and nothing was done; std::runtime_error for what it does not know.
    boost::json::object transaction(const boost::json::object&);
    boost::json::object range(const boost::json::object&) const;
    boost::json::object grant(const boost::json::object&);
    boost::json::object time_to_live(const boost::json::object&, std::int64_t seconds_left) const;
    boost::json::object revoke(const boost::json::object&);
    /// The one answer of a stream. Whoever keeps the time has it last longer.
    boost::json::object keep_alive(const boost::json::object&) const;

    /// A lease ends, and its keys are deleted.
    void end(std::int64_t lease);
    boost::json::object header() const;
    const Key* find(std::string_view key) const;
    const Lease* lease(std::int64_t id) const;
    /// Of keys from `begin` up to `end`, from this revision on, as the events of a watch.
    boost::json::array events(std::string_view begin, std::string_view end,
                              std::int64_t from) const;

    /// Called where a request makes a key, or deletes this one by its name, there or not.
    std::function<void(const std::string& key, bool made)> asked_for;
    std::int64_t shortest_lease = 2;  ///< in seconds: of etcd's default elections
    std::int64_t revision = 1;
    std::map<std::string, Key, std::less<>> keys;
    std::map<std::int64_t, Lease> leases;
    std::vector<Event> history;

private:
    struct Plan;
    struct Changes {
        std::int64_t revision;  ///< that of all of them
        std::vector<Event> events;
    };
    struct Written;
    static Written written(const boost::json::array& requests);
    Plan plan(const boost::json::object&) const;
    void check(const Plan&) const;
    boost::json::object execute(const Plan&, Changes&);
    boost::json::object put(const boost::json::object&, Changes&);
    boost::json::object delete_range(const boost::json::object&, Changes&);
    bool holds(const boost::json::object& comparison) const;
    void remove(std::map<std::string, Key, std::less<>>::iterator, Changes&);
    void keep(Changes&);
    std::int64_t last_id_ = 0x1000;
};

// --- parts of the gateway's JSON
/// Null: there is none.
const boost::json::object* object_in(const boost::json::object&, std::string_view name);
/// The number, which may be a text or missing (0).
std::int64_t number_in(const boost::json::object&, std::string_view name);
std::string text_in(const boost::json::object&, std::string_view name);
/// From base64; empty when there is none.
std::string bytes_in(const boost::json::object&, std::string_view name);
std::string base64(std::string_view);

}  // namespace holdfast::sim
