#include "marks.hpp"

#include <utility>

#include "keys.hpp"

namespace holdfast::etcd {
namespace {

constexpr std::string_view last = "%last", abandoned = "abandoned", released = "released";
constexpr char first_of_owners = '&';  // after the '%' of `last`; no owner begins with less
// `last`, its own mark, and one of another holder, which says enough: there may be thousands.
constexpr std::int64_t enough_marks = 3;

std::string ended(const OwnerState& p) {
    return p.marks + std::string(last);
}

/// Nobody else has held it since, so all marks are this holder's and older ones.
void remove_marks(const OwnerState& p, Requests to) {
    to.remove({p.marks + first_of_owners, after(p.marks)});
}

/// That all was well need not be known for long: it ends with the holder's lease.
void all_was_well(const OwnerState& p, std::int64_t lease, Requests to) {
    remove_marks(p, to);
    to.put(ended(p), released, lease);
}

void ending(const OwnerState& p, Outcome outcome, Requests to) {
    // The lease is there if the key is, unless a renewal that was not answered has attached it to
    // another one.
    if (outcome == Outcome::done && p.lease_certain) return all_was_well(p, p.lease, to);
    remove_marks(p, to);
    if (outcome == Outcome::abandoned)
        to.put(ended(p), abandoned, 0);
    else
        to.remove(ended(p));
}

}  // namespace

void add_grant(const OwnerState& p, Transaction t) {
    if (p.marks.empty()) return;
    if (p.writes_marks()) t.then().put(p.marks + p.owner, "", 0);
    t.then().range(Keys::below(p.marks), enough_marks);
}

void add_release(const OwnerState& p, Outcome outcome, Transaction t) {
    if (!p.writes_marks()) return;
    // A holder that was revoked has not finished: to the next holder it has crashed.
    Transaction unless_revoked = t.then().transaction();
    unless_revoked.if_value(p.key, p.revoked_value());
    ending(p, outcome, unless_revoked.otherwise());
}

void add_downgrade(const OwnerState& p, std::int64_t lease, Transaction t) {
    if (!p.marks.empty()) all_was_well(p, lease, t.then());
}

void add_withdrawal(const OwnerState& p, Transaction t) {
    if (p.writes_marks()) t.then().remove(p.marks + p.owner);
}

PreviousHolder read_grant(const OwnerState& p, const Result& transaction) {
    if (p.marks.empty() || transaction.results.empty()) return PreviousHolder::unknown;
    PreviousHolder previous = PreviousHolder::none;
    for (const KeyValue& kv : transaction.results.back().found) {
        if (!kv.key.starts_with(p.marks)) continue;
        const auto whose = std::string_view(kv.key).substr(p.marks.size());
        if (whose == p.owner) continue;
        // A release deletes all marks of owners, so one that is there is later than `last`.
        if (whose != last) return PreviousHolder::crashed;
        previous = kv.value == abandoned ? PreviousHolder::abandoned : PreviousHolder::released;
    }
    return previous;
}

}  // namespace holdfast::etcd
