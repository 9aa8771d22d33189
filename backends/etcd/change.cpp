#include "change.hpp"

#include "entering.hpp"
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "marks.hpp"
#include "operations.hpp"

namespace holdfast::etcd {

using Renewal = spi::Held::Renewal;

void Change::request(Transaction t) {
    OwnerState& p = place_;
    p.lease_certain = false;
    t.if_created(p.key, p.created);
    t.if_modified(p.key, p.modified);
    t.if_value(p.key, p.value);
    value_ = what_ == What::adopt ? p.waiting_value() : p.value_with(units_);
    if (value_ == p.value)
        t.then().put_lease(p.key, lease_.id);
    else
        t.then().put(p.key, value_, lease_.id);
    if (units_ != p.units) add_downgrade(p, lease_.id, t);
    if (what_ == What::take) add_grant(p, t);
    t.otherwise().range(p.key);
    if (what_ == What::take) {
        if_proper_name(p, t);
        t.otherwise().range(name_key(p.line));
    }
}

Change::Outcome Change::answered(const Result& r, std::int64_t revision) {
    constexpr int most_rounds = 3;
    OwnerState& p = place_;
    if (r.succeeded) {
        p.modified = revision;
        p.lease = lease_.id;
        p.lease_certain = true;
        if (what_ == What::take) previous_ = read_grant(p, r);
        p.value = value_;
        p.units = units_;
        return Outcome::done;
    }
    const KeyValue* kv = nullptr;
    if (!r.results.empty() && !r.results.front().found.empty())
        kv = &r.results.front().found.front();
    if (kv == nullptr || kv->created != p.created) return Outcome::gone;
    if (!p.learn(kv->value)) return Outcome::revoked;
    if (what_ == What::take && r.results.size() == 2 && !is_proper(p, r.results.back().found))
        return Outcome::other_kind;
    p.modified = kv->modified;  // one of ours that was not answered, or it is asked
    return ++rounds_ < most_rounds ? Outcome::again : Outcome::refused;
}

// --- a renewal: a change, and no more

Renew::Renew(spi::Held& h) : Operation(h), held_(h) {
    h.renewal = Renewal::unknown;
    // A downgrade writes marks, which no transaction may write twice.
    want(Step::renew, Needs::young, !place->marks.empty() && h.units != place->units);
}

void Renew::request(Transaction t) {
    if (!change_) change_.emplace(*place, lease(), held_.units, Change::What::renew);
    change_->request(t);
}

void Renew::answered(const Result& r, const RequestInfo& went) {
    using enum Change::Outcome;
    const auto outcome = change_->answered(r, went.revision);
    held_.asked = place->asked;
    switch (outcome) {
        case again:
            return;
        case done:
            held_.renewal = Renewal::renewed;
            held_.renewed_base = lease().base;
            held_.renewed_ttl = lease().believed(held_.ttl, held_.lock_delay);
            place->valid_until = spi::valid_until(lease().base, *held_.renewed_ttl);
            break;
        case other_kind:  // of a grant only
        case gone:
            held_.renewal = Renewal::lost;
            held_.renewal_error = make_error_code(errc::lost);
            held_.detail = "its key is not there any more";
            break;
        case revoked:
            held_.renewal = Renewal::lost;
            held_.renewal_error = make_error_code(errc::revoked);
            break;
        case refused:
            held_.renewal_error = make(Error::refused);
            held_.detail = held_.renewal_error.message();
            break;
    }
    want(Step::over);
}

void Renew::missing(const error_code& why, const RequestInfo& went) {
    held_.renewal_error = why;
    held_.detail = went.detail;
    want(Step::over);
}

}  // namespace holdfast::etcd
