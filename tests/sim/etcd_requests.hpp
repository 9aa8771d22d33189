// Random requests to etcd, of the kinds that the backend sends.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "etcd.pb.h"
#include "kernel.hpp"

namespace holdfast::sim {

namespace rpc = etcd::rpc;

/// Requests that meet each other: few keys, few values, leases that come and go. A lease is named
/// by its number among those that were granted.
class EtcdRequests {
public:
    explicit EtcdRequests(Random& r) : r_(r) {}

    std::int64_t lease() {
        return static_cast<std::int64_t>(1 + r_.below(std::min<std::uint64_t>(leases_ + 1, 90)));
    }
    void granted() { ++leases_; }
    /// A key, or a range of them.
    template <class Message>
    void span(Message& m) {
        const std::string& from = one_of(r_, keys());
        m.set_key(from);
        if (r_.chance(400)) m.set_range_end(one_of(r_, keys()) + "0");
    }
    rpc::RangeRequest range() {
        rpc::RangeRequest out;
        span(out);
        if (r_.chance(300)) out.set_limit(static_cast<std::int64_t>(1 + r_.below(3)));
        if (r_.chance(300)) out.set_keys_only(true);
        if (r_.chance(100)) out.set_count_only(true);
        if (r_.chance(10)) out.clear_key();
        return out;
    }
    rpc::TxnRequest transaction() {
        deletable_.clear();
        for (const std::string& k : keys())
            if (r_.chance(400)) deletable_.insert(k);
        used_.clear();
        return transaction(r_.chance(400) ? 1 : 0);
    }

private:
    static const std::string& one_of(Random& r, const std::vector<std::string>& all) {
        return all[r.below(all.size())];
    }
    static const std::vector<std::string>& keys() {
        static const std::vector<std::string> all{"f/a", "f/b", "f/b/", "f/b/1", "f/b/2", "f/c"};
        return all;
    }
    const std::string& value() {
        static const std::vector<std::string> all{"", "hf1 x", "hf1s x", "hf1p5:3 y", "hf1t"};
        return one_of(r_, all);
    }
    rpc::Compare comparison() {
        rpc::Compare out;
        span(out);
        out.set_result(static_cast<rpc::Compare::Result>(r_.below(4)));
        const auto revision = static_cast<std::int64_t>(r_.chance(500) ? 0 : 1 + r_.below(40));
        switch (r_.below(4)) {
            case 0:
                out.set_target(rpc::Compare::CREATE);
                out.set_create_revision(revision);
                break;
            case 1:
                out.set_target(rpc::Compare::MOD);
                out.set_mod_revision(revision);
                break;
            case 2:
                out.set_target(rpc::Compare::VERSION);
                out.set_version(static_cast<std::int64_t>(r_.below(4)));
                break;
            default:
                out.set_target(rpc::Compare::VALUE);
                out.set_value(value());
        }
        return out;
    }
    rpc::RequestOp operation(int depth) {
        rpc::RequestOp out;
        const auto kind = r_.below(depth > 0 ? 8 : 6);
        if (kind < 3) {
            // A key twice in one transaction is refused, as are a put and a deletion of it.
            const std::string& key = one_of(r_, keys());
            const bool twice = deletable_.contains(key) || !used_.insert(key).second;
            if (!twice || r_.chance(20)) {
                put(key, *out.mutable_request_put());
                return out;
            }
        } else if (kind < 5 && !deletable_.empty()) {
            const std::vector<std::string> some(deletable_.begin(), deletable_.end());
            out.mutable_request_delete_range()->set_key(one_of(r_, some));
            out.mutable_request_delete_range()->set_prev_kv(r_.chance(500));
            return out;
        } else if (kind >= 6) {
            *out.mutable_request_txn() = transaction(0);
            return out;
        }
        *out.mutable_request_range() = range();
        return out;
    }
    void put(const std::string& key, rpc::PutRequest& to) {
        to.set_key(key);
        const auto how = r_.below(6);
        if (how != 0) to.set_value(value());
        if (how == 0) to.set_ignore_value(true);
        if (how == 1)
            to.set_ignore_lease(true);
        else if (r_.chance(400))
            to.set_lease(lease());
    }
    rpc::TxnRequest transaction(int depth) {
        rpc::TxnRequest out;
        for (auto n = r_.below(3); n > 0; --n)
            *out.add_compare() = comparison();
        for (auto n = r_.below(4); n > 0; --n)
            *out.add_success() = operation(depth);
        for (auto n = r_.below(3); n > 0; --n)
            *out.add_failure() = operation(depth);
        return out;
    }

    Random& r_;
    std::uint64_t leases_ = 0;
    std::set<std::string> deletable_, used_;
};

}  // namespace holdfast::sim
