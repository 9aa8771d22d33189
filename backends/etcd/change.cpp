#include "change.hpp"

#include "entering.hpp"
#include "marks.hpp"

namespace holdfast::etcd {

Transaction Change::request() {
    OwnerState& p = place_;
    p.lease_certain = false;
    Transaction t;
    t.compare = {was_created(p.key, p.created), was_modified(p.key, p.modified),
                 has_value(p.key, p.value)};
    if (units_ == p.units) {
        t.success = {put_lease(p.key, lease_.id)};
    } else {
        t.success = {put(p.key, p.value_with(units_), lease_.id)};
        add_downgrade(p, lease_.id, t);
    }
    if (grant_) add_grant(p, t);
    t.failure = {range(p.key)};
    if (grant_) {
        t.compare.push_back(proper_name(p));
        t.failure.push_back(range(name_key(p.line)));
    }
    return t;
}

Change::Outcome Change::answered(const Result& r, std::int64_t revision) {
    constexpr int most_rounds = 3;
    OwnerState& p = place_;
    if (r.succeeded) {
        p.modified = revision;
        p.lease = lease_.id;
        p.lease_certain = true;
        if (grant_) previous_ = read_grant(p, r);
        p.value = p.value_with(units_);
        p.units = units_;
        return Outcome::done;
    }
    const KeyValue* kv = nullptr;
    if (!r.results.empty() && !r.results.front().found.empty())
        kv = &r.results.front().found.front();
    if (kv == nullptr || kv->created != p.created) return Outcome::gone;
    if (!p.learn(kv->value)) return Outcome::revoked;
    if (grant_ && r.results.size() == 2 && !is_proper(p, r.results.back().found))
        return Outcome::other_kind;
    p.modified = kv->modified;  // one of ours that was not answered, or it is asked
    return ++rounds_ < most_rounds ? Outcome::again : Outcome::refused;
}

}  // namespace holdfast::etcd
