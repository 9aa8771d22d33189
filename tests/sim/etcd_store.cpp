#include "etcd_store.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::sim {
namespace {

// Codes of gRPC.
constexpr int invalid = 3, not_found = 5, failed_precondition = 9;

void show(const std::string& key, const EtcdStore::Key& k, auto& to, bool with_value = true) {
    to.set_key(key);
    to.set_create_revision(k.created);
    to.set_mod_revision(k.modified);
    to.set_version(k.version);
    if (with_value) to.set_value(k.value);
    to.set_lease(k.lease);
}

/// The keys from `begin` up to `end`; the one alone without an end; all later ones up to "\0".
template <class Keys>
auto bounds(Keys& keys, const std::string& begin, const std::string& end) {
    const auto from = keys.lower_bound(begin);
    if (end.empty())
        return std::pair(from, from != keys.end() && from->first == begin ? std::next(from) : from);
    if (end == std::string(1, '\0')) return std::pair(from, keys.end());
    return std::pair(from, end <= begin ? from : keys.lower_bound(end));
}

template <class T>
bool compares(rpc::Compare::Result result, const T& has, const T& asked) {
    switch (result) {
        case rpc::Compare::EQUAL:
            return has == asked;
        case rpc::Compare::GREATER:
            return has > asked;
        case rpc::Compare::LESS:
            return has < asked;
        case rpc::Compare::NOT_EQUAL:
            return has != asked;
        default:
            throw std::runtime_error("etcd: no comparison: " + std::to_string(result));
    }
}

[[noreturn]] void refuse(const char* why) {
    throw EtcdError(invalid, why);
}

template <class Request>
void check_key(const Request& r) {
    if (r.key().empty()) refuse("etcdserver: key is not provided");
}

/// What a member refuses before it looks at any key.
void check_form(const rpc::TxnRequest& txn, int most_operations = 128) {
    const int operations = std::max({txn.compare_size(), txn.success_size(), txn.failure_size()});
    if (operations > most_operations) refuse("etcdserver: too many operations in txn request");
    for (const rpc::Compare& c : txn.compare())
        check_key(c);
    for (const auto* branch : {&txn.success(), &txn.failure()})
        for (const rpc::RequestOp& r : *branch) {
            if (r.has_request_range()) {
                check_key(r.request_range());
            } else if (r.has_request_put()) {
                const rpc::PutRequest& put = r.request_put();
                check_key(put);
                if (put.ignore_value() && !put.value().empty())
                    refuse("etcdserver: value is provided");
                if (put.ignore_lease() && put.lease() != 0) refuse("etcdserver: lease is provided");
            } else if (r.has_request_delete_range()) {
                check_key(r.request_delete_range());
            } else if (r.has_request_txn()) {
                check_form(r.request_txn(), most_operations - operations);
            } else {
                refuse("etcdserver: key not found");
            }
        }
}

}  // namespace

/// A transaction with its branch chosen: all comparisons come before all requests.
struct EtcdStore::Plan {
    bool succeeded = true;
    const Requests* requests = nullptr;
    std::vector<Plan> nested;  ///< those of its requests that are transactions, in their order
};

EtcdStore::Plan EtcdStore::plan(const rpc::TxnRequest& txn) const {
    Plan out;
    for (const rpc::Compare& c : txn.compare())
        out.succeeded = out.succeeded && holds(c);
    out.requests = out.succeeded ? &txn.success() : &txn.failure();
    for (const rpc::RequestOp& r : *out.requests)
        if (r.has_request_txn()) out.nested.push_back(plan(r.request_txn()));
    return out;
}

bool EtcdStore::holds(const rpc::Compare& c) const {
    const auto [from, to] = bounds(keys, c.key(), c.range_end());
    const auto one = [&](const Key& k) {
        switch (c.target()) {
            case rpc::Compare::VALUE:
                return compares(c.result(), k.value, c.value());
            case rpc::Compare::CREATE:
                return compares(c.result(), k.created, c.create_revision());
            case rpc::Compare::MOD:
                return compares(c.result(), k.modified, c.mod_revision());
            case rpc::Compare::VERSION:
                return compares(c.result(), k.version, c.version());
            case rpc::Compare::LEASE:
                return compares(c.result(), k.lease, c.lease());
            default:
                throw std::runtime_error("etcd: no target: " + std::to_string(c.target()));
        }
    };
    // What is not there has no value that could be compared.
    if (from == to) return c.target() != rpc::Compare::VALUE && one(Key());
    return std::all_of(from, to, [&](const auto& entry) { return one(entry.second); });
}

/// No transaction writes a key twice, whichever of its branches are taken.
struct EtcdStore::Written {
    std::set<std::string, std::less<>> puts;
    std::vector<std::pair<std::string, std::string>> deletions;  ///< ranges

    void put(const std::string& key) {
        for (const auto& [begin, end] : deletions)
            if (end.empty() ? key == begin : begin <= key && key < end) twice();
        if (!puts.insert(key).second) twice();
    }
    [[noreturn]] static void twice() { refuse("etcdserver: duplicate key given in txn request"); }
};

EtcdStore::Written EtcdStore::written(const Requests& requests) {
    Written out;
    for (const rpc::RequestOp& r : requests)
        if (r.has_request_delete_range())
            out.deletions.emplace_back(r.request_delete_range().key(),
                                       r.request_delete_range().range_end());
    for (const rpc::RequestOp& r : requests)
        if (r.has_request_txn()) {
            const Written then = written(r.request_txn().success()),
                          otherwise = written(r.request_txn().failure());
            for (const std::string& key : then.puts)
                out.put(key);
            for (const std::string& key : otherwise.puts)
                if (!then.puts.contains(key)) out.put(key);
            for (const Written* w : {&then, &otherwise})
                out.deletions.insert(out.deletions.end(), w->deletions.begin(), w->deletions.end());
        }
    for (const rpc::RequestOp& r : requests)
        if (r.has_request_put()) out.put(r.request_put().key());
    return out;
}

/// What would fail half-way is refused before anything is done.
void EtcdStore::check(const Plan& p) const {
    auto inner = p.nested.begin();
    for (const rpc::RequestOp& r : *p.requests) {
        if (r.has_request_txn()) {
            check(*inner++);
            continue;
        }
        if (!r.has_request_put()) continue;
        const rpc::PutRequest& put = r.request_put();
        if ((put.ignore_value() || put.ignore_lease()) && !keys.contains(put.key()))
            refuse("etcdserver: key not found");
        if (put.lease() != 0 && lease(put.lease()) == nullptr)
            throw EtcdError(not_found, "etcdserver: requested lease not found");
    }
}

rpc::TxnResponse EtcdStore::transaction(const rpc::TxnRequest& txn) {
    check_form(txn);
    for (const Requests* branch : {&txn.success(), &txn.failure()})
        written(*branch);
    const Plan chosen = plan(txn);
    check(chosen);
    Changes changes{revision + 1, {}};
    rpc::TxnResponse out;
    execute(chosen, changes, out);
    keep(changes);
    tell_revision(*out.mutable_header());
    return out;
}

void EtcdStore::execute(const Plan& p, Changes& changes, rpc::TxnResponse& to) {
    to.set_succeeded(p.succeeded);
    auto inner = p.nested.begin();
    const auto at_that_time = [&](auto& response) {
        const auto at = changes.events.empty() ? revision : changes.revision;
        response.mutable_header()->set_revision(at);
    };
    for (const rpc::RequestOp& r : *p.requests) {
        rpc::ResponseOp& response = *to.add_responses();
        if (r.has_request_put()) {
            put(r.request_put(), changes);
            at_that_time(*response.mutable_response_put());
        } else if (r.has_request_range()) {
            *response.mutable_response_range() = range(r.request_range());
            at_that_time(*response.mutable_response_range());
        } else if (r.has_request_delete_range()) {
            auto& gone = *response.mutable_response_delete_range();
            delete_range(r.request_delete_range(), changes, gone);
            at_that_time(gone);
        } else {
            execute(*inner++, changes, *response.mutable_response_txn());
            at_that_time(*response.mutable_response_txn());
        }
    }
}

void EtcdStore::put(const rpc::PutRequest& r, Changes& changes) {
    Key& k = keys[r.key()];
    const std::int64_t asked = r.ignore_lease() ? k.lease : r.lease();
    if (!r.ignore_value()) k.value = r.value();
    if (k.version++ == 0) {
        k.created = changes.revision;
        if (asked_for) asked_for(r.key(), true);
    }
    k.modified = changes.revision;
    if (k.lease != asked) {
        if (const auto old = leases.find(k.lease); old != leases.end())
            old->second.keys.erase(r.key());
        if (asked != 0) leases.at(asked).keys.insert(r.key());
        k.lease = asked;
    }
    changes.events.push_back({changes.revision, r.key(), k});
}

void EtcdStore::delete_range(const rpc::DeleteRangeRequest& r, Changes& changes,
                             rpc::DeleteRangeResponse& to) {
    auto [from, end] = bounds(keys, r.key(), r.range_end());
    if (asked_for && r.range_end().empty()) asked_for(r.key(), false);
    to.set_deleted(std::distance(from, end));
    while (from != end) {
        if (r.prev_kv()) show(from->first, from->second, *to.add_prev_kvs());
        remove(from++, changes);
    }
}

void EtcdStore::remove(std::map<std::string, Key, std::less<>>::iterator at, Changes& changes) {
    if (const auto l = leases.find(at->second.lease); l != leases.end())
        l->second.keys.erase(at->first);
    changes.events.push_back({changes.revision, at->first, Key{{}, 0, changes.revision, 0, 0}});
    keys.erase(at);
}

void EtcdStore::keep(Changes& changes) {
    if (changes.events.empty()) return;
    revision = changes.revision;
    std::move(changes.events.begin(), changes.events.end(), std::back_inserter(history));
}

rpc::RangeResponse EtcdStore::range(const rpc::RangeRequest& r) const {
    check_key(r);
    const auto [from, to] = bounds(keys, r.key(), r.range_end());
    rpc::RangeResponse out;
    out.set_count(std::distance(from, to));
    tell_revision(*out.mutable_header());
    if (r.count_only()) return out;
    for (auto at = from; at != to; ++at) {
        if (r.limit() != 0 && out.kvs_size() == r.limit()) break;
        show(at->first, at->second, *out.add_kvs(), !r.keys_only());
    }
    out.set_more(out.kvs_size() < out.count());
    return out;
}

rpc::LeaseGrantResponse EtcdStore::grant(const rpc::LeaseGrantRequest& r) {
    if (r.id() != 0 && lease(r.id()) != nullptr)
        throw EtcdError(failed_precondition, "etcdserver: lease already exists");
    const std::int64_t id = r.id() != 0 ? r.id() : last_id_ += 7;
    Lease& l = leases[id];
    l.seconds = std::max(r.ttl(), shortest_lease);
    rpc::LeaseGrantResponse out;
    tell_revision(*out.mutable_header());
    out.set_id(id);
    out.set_ttl(l.seconds);
    return out;
}

rpc::LeaseTimeToLiveResponse EtcdStore::time_to_live(const rpc::LeaseTimeToLiveRequest& r,
                                                     std::int64_t seconds_left) const {
    rpc::LeaseTimeToLiveResponse out;
    tell_revision(*out.mutable_header());
    out.set_id(r.id());
    const Lease* l = lease(r.id());
    out.set_ttl(l == nullptr ? -1 : seconds_left);
    if (l == nullptr) return out;
    out.set_granted_ttl(l->seconds);
    if (r.keys())
        for (const std::string& key : l->keys)
            out.add_keys(key);
    return out;
}

rpc::LeaseRevokeResponse EtcdStore::revoke(const rpc::LeaseRevokeRequest& r) {
    if (lease(r.id()) == nullptr)
        throw EtcdError(not_found, "etcdserver: requested lease not found");
    end(r.id());
    rpc::LeaseRevokeResponse out;
    tell_revision(*out.mutable_header());
    return out;
}

rpc::LeaseKeepAliveResponse EtcdStore::keep_alive(const rpc::LeaseKeepAliveRequest& r) const {
    rpc::LeaseKeepAliveResponse out;
    tell_revision(*out.mutable_header());
    out.set_id(r.id());
    if (const Lease* l = lease(r.id())) out.set_ttl(l->seconds);
    return out;
}

void EtcdStore::end(std::int64_t id) {
    const auto l = leases.find(id);
    if (l == leases.end()) return;
    Changes changes{revision + 1, {}};
    for (const std::string& key : std::set(l->second.keys))
        if (const auto at = keys.find(key); at != keys.end()) remove(at, changes);
    leases.erase(l);
    keep(changes);
}

const EtcdStore::Key* EtcdStore::find(std::string_view key) const {
    const auto at = keys.find(key);
    return at == keys.end() ? nullptr : &at->second;
}

const EtcdStore::Lease* EtcdStore::lease(std::int64_t id) const {
    const auto at = leases.find(id);
    return at == leases.end() ? nullptr : &at->second;
}

void EtcdStore::tell_events(std::string_view begin, std::string_view end, std::int64_t from,
                            rpc::WatchResponse& to) const {
    const bool open = end == std::string_view("\0", 1);
    for (const Event& e : history) {
        if (e.revision < from || e.key < begin) continue;
        if (end.empty() ? e.key != begin : !open && e.key >= end) continue;
        rpc::Event& event = *to.add_events();
        if (e.now.version == 0) event.set_type(rpc::Event::DELETE);
        show(e.key, e.now, *event.mutable_kv());
    }
}

void EtcdStore::compact(std::int64_t at) {
    compacted = at;
    std::erase_if(history, [&](const Event& e) { return e.revision < at; });
}

}  // namespace holdfast::sim
