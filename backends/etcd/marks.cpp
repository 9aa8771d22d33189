#include "marks.hpp"

#include "keys.hpp"

namespace holdfast::etcd {
namespace {

constexpr std::string_view last = "%last", abandoned = "abandoned", released = "released";
constexpr char first_of_owners = '&';  // after the '%' of `last`; no owner begins with less

/// Nobody else has held it since, so all marks are this holder's and older ones.
void drop_marks(const Place& p, Transaction& t) {
    t.success.push_back(deletion_of_all(p.marks + first_of_owners, after(p.marks)));
}

}  // namespace

void add_grant(const Place& p, Transaction& t) {
    if (p.marks.empty()) return;
    if (p.units.exclusive()) t.success.push_back(put(p.marks + p.owner, "", 0));
    t.success.push_back(range(p.marks, after(p.marks), 0));
}

void add_release(const Place& p, Outcome outcome, Transaction& t) {
    if (p.marks.empty() || !p.units.exclusive()) return;
    // That all was well need not be known for long: it ends with the holder's lease. The lease is
    // there if the key is, unless a renewal that was not answered has attached it to another one.
    if (outcome == Outcome::done && p.lease_certain) return add_downgrade(p, p.lease, t);
    drop_marks(p, t);
    const std::string ended = p.marks + std::string(last);
    if (outcome == Outcome::abandoned)
        t.success.push_back(put(ended, abandoned, 0));
    else
        t.success.push_back(deletion(ended));
}

void add_downgrade(const Place& p, std::int64_t lease, Transaction& t) {
    if (p.marks.empty()) return;
    drop_marks(p, t);
    t.success.push_back(put(p.marks + std::string(last), released, lease));
}

void add_withdrawal(const Place& p, Transaction& t) {
    if (!p.marks.empty() && p.units.exclusive()) t.success.push_back(deletion(p.marks + p.owner));
}

PreviousHolder read_grant(const Place& p, const Result& transaction) {
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
