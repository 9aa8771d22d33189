#include "entering.hpp"

#include <map>
#include <set>

#include "marks.hpp"

namespace holdfast::etcd {
namespace {

using What = Entered::Outcome;

bool lists(const OwnerState& p, const Entering& e) {
    return e.list || p.units.permits();
}

/// Its key is made, even beside other keys.
bool stands_in_line(const OwnerState& p, const Entering& e) {
    return e.queue || p.units.permits();
}

bool is_reader(const OwnerState& p) {
    return p.units.mode == Mode::shared;
}

void if_all_beside(const OwnerState& p, Transaction t) {
    const std::string begin = compatible_prefix(p.units);
    t.if_all_above(Keys::below(p.line), begin);
    t.if_all_below(Keys::below(p.line), after(begin));
}

/// Its key is not there, and it has not left, and no other kind of lock has the name.
void if_new(const OwnerState& p, Transaction t) {
    t.if_created(p.tombstone, 0);
    if_proper_name(p, t);
    t.if_created(p.key, 0);
}

}  // namespace

void if_proper_name(const OwnerState& p, Transaction t) {
    if (p.units.permits())
        t.if_value(name_key(p.line), permits_marker);
    else
        t.if_created(name_key(p.line), 0);
}

bool is_proper(const OwnerState& p, const std::vector<KeyValue>& at_name) {
    if (!p.units.permits()) return at_name.empty();
    return !at_name.empty() && at_name.front().value == permits_marker;
}

void entering(const OwnerState& p, const Entering& e, Transaction t) {
    const std::string_view alone = name_key(p.line);
    if (e.behind) {
        if_new(p, t);
        t.then().put(p.key, p.value, e.lease);
        t.otherwise().range(p.key);
        return t.otherwise().range(alone);
    }
    t.if_created(p.tombstone, 0);
    t.if_created(alone, 0);
    t.if_none(Keys::below(p.line));
    t.then().put(p.key, p.value, e.lease);
    if (p.units.permits()) t.then().put(alone, permits_marker, 0);
    add_grant(p, t);
    Requests otherwise = t.otherwise();
    if (is_reader(p)) {
        Transaction readers = otherwise.transaction();
        if_new(p, readers);
        if_all_beside(p, readers);
        readers.then().put(p.key, p.value, e.lease);
        add_grant(p, readers);
        otherwise = readers.otherwise();
    }
    if (stands_in_line(p, e)) {
        Transaction stands = otherwise.transaction();
        if_new(p, stands);
        if (p.units.permits()) if_all_beside(p, stands);
        stands.then().put(p.key, p.value, e.lease);
        otherwise = stands.otherwise();
    }
    otherwise.range(p.key);
    otherwise.range(alone);
    if (lists(p, e)) t.otherwise().range(Keys::below(p.line));
}

Entered read_entering(const OwnerState& p, const Entering& e, const Result& whole) {
    Entered out;
    const Result* at = &whole;
    const auto granted = [&] {
        out.outcome = What::granted;
        out.previous = read_grant(p, *at);
        return out;
    };
    if (e.behind && at->succeeded) {
        out.outcome = What::made;
        return out;
    }
    if (at->succeeded) return granted();
    const std::size_t inner = !e.behind && (is_reader(p) || stands_in_line(p, e)) ? 1 : 2;
    if (at->results.size() != inner + (lists(p, e) ? 1U : 0U)) return out;
    if (lists(p, e)) out.line = &at->results.back().found;
    if (is_reader(p) && !e.behind) {
        at = &at->results.front();
        if (at->succeeded) return granted();
    }
    if (stands_in_line(p, e) && !e.behind) {
        if (at->results.empty()) return out;
        at = &at->results.front();
        if (at->succeeded) {
            out.outcome = What::made;
            return out;
        }
    }
    if (at->results.size() < 2) return out;
    const std::vector<KeyValue>&own = at->results[0].found, &name = at->results[1].found;
    const bool marked = !name.empty() && name.front().value == permits_marker;
    if (!own.empty()) {
        out.outcome = What::stands;
        out.found = own.front();
    } else if (marked && !(p.units.permits() && !out.line->empty())) {
        out.outcome = What::marked;
        out.found = name.front();
    } else if (!name.empty() && !marked) {
        out.outcome = What::foreign;
    } else if (p.units.permits() && !out.line->empty()) {
        out.outcome = What::other_kind;
    } else {
        out.outcome = stands_in_line(p, e) ? What::left : What::busy;
    }
    return out;
}

void clearing(const OwnerState& p, std::int64_t marker_created, Transaction t) {
    const std::string_view alone = name_key(p.line);
    t.if_created(alone, marker_created);
    t.if_none(Keys::below(p.line));
    t.then().remove(alone);
    t.otherwise().range(alone);
}

bool is_clear(const Result& r, std::int64_t marker_created) {
    if (r.succeeded || r.results.empty() || r.results.front().found.empty()) return true;
    return r.results.front().found.front().created != marker_created;
}

void add_leaving(std::span<const OwnerState* const> all, std::span<Transaction> requests) {
    constexpr char first = ' ';  // of what a key is made of: the key after one has it at least
    std::map<std::string, std::set<std::string>> keys;
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i]->units.permits()) continue;
        keys[all[i]->line].insert(all[i]->key);
        last[all[i]->line] = i;
    }
    for (const auto& [line, leaving] : keys) {
        const std::string_view alone = name_key(line);
        Transaction t = requests[last[line]].then().transaction();
        t.if_value(alone, permits_marker);
        std::string from = line;
        for (const std::string& key : leaving) {
            t.if_none({from, key});
            from = key + first;
        }
        t.if_none({from, after(line)});
        t.then().remove(alone);
    }
}

}  // namespace holdfast::etcd
