// What the members of an etcd cluster have in common: keys, leases and revisions, and the answers
// to the requests that the backend sends (https://etcd.io/docs/v3.4/rfc/v3api/). No network and no
// clock: its owner says when a lease ends. Held against etcd itself by fidelity.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "etcd.pb.h"

namespace holdfast::sim {

namespace rpc = etcd::rpc;

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
    rpc::TxnResponse transaction(const rpc::TxnRequest&);
    rpc::RangeResponse range(const rpc::RangeRequest&) const;
    rpc::LeaseGrantResponse grant(const rpc::LeaseGrantRequest&);
    rpc::LeaseTimeToLiveResponse time_to_live(const rpc::LeaseTimeToLiveRequest&,
                                              std::int64_t seconds_left) const;
    rpc::LeaseRevokeResponse revoke(const rpc::LeaseRevokeRequest&);
    /// The keeper of the time has the lease last longer.
    rpc::LeaseKeepAliveResponse keep_alive(const rpc::LeaseKeepAliveRequest&) const;

    /// A lease ends, and its keys are deleted.
    void end(std::int64_t lease);
    void tell_revision(rpc::ResponseHeader& to) const { to.set_revision(revision); }
    const Key* find(std::string_view key) const;
    const Lease* lease(std::int64_t id) const;
    /// Of keys from `begin` up to `end` and from this revision on, as a watch has them.
    void tell_events(std::string_view begin, std::string_view end, std::int64_t from,
                     rpc::WatchResponse& to) const;
    /// Earlier events are forgotten.
    void compact(std::int64_t at);

    /// Called where a request makes a key, or deletes this one by its name, there or not.
    std::function<void(const std::string& key, bool made)> asked_for;
    std::int64_t shortest_lease = 2;  ///< in seconds: of etcd's default elections
    std::int64_t revision = 1, compacted = 0;
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
    using Requests = google::protobuf::RepeatedPtrField<rpc::RequestOp>;
    static Written written(const Requests&);
    Plan plan(const rpc::TxnRequest&) const;
    void check(const Plan&) const;
    void execute(const Plan&, Changes&, rpc::TxnResponse& to);
    void put(const rpc::PutRequest&, Changes&);
    void delete_range(const rpc::DeleteRangeRequest&, Changes&, rpc::DeleteRangeResponse& to);
    bool holds(const rpc::Compare&) const;
    void remove(std::map<std::string, Key, std::less<>>::iterator, Changes&);
    void keep(Changes&);
    std::int64_t last_id_ = 0x1000;
};

}  // namespace holdfast::sim
